"""Environment of the lattice tests.

When NetKet is imported it switches JAX to double precision and sets a device mesh for the whole process; other tests in the
same process must not see that.
"""

import os

os.environ.setdefault("NETKET_ENABLE_X64", "0")
os.environ.setdefault("NETKET_SHARDING", "0")
