"""NetKet, when imported, switches JAX to double precision and sets a device mesh for the whole process; tests that share a
process with one that uses it must not see that."""

import os

os.environ.setdefault("NETKET_ENABLE_X64", "0")
os.environ.setdefault("NETKET_SHARDING", "0")
