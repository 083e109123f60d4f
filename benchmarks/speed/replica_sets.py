"""Rate of multicanonical chains against the number of groups (replicas) moved in one operation.

    python -m benchmarks.speed.replica_sets

Million site-gradients per second of 16 groups of 8 chains on all devices, and per second of processor time.  Few groups at a
time leave work for the other devices, and small arrays stay in the cache.  The number in use is
`quenchphys.parallel.sharding.set_size`.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import jax
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from quenchphys.parallel.sharding import set_size
from quenchphys.samplers import multicanonical_chains

GROUPS, CHAINS = 16, 8
SWEEPS = {8: 640, 16: 160, 40: 32}


def rates(L: int, together: int) -> tuple[float, float]:
    """Million site-gradients per second, and per second of processor time, of chains in the disordered phase."""
    multicanonical_chains.programs.cache_clear()
    model = lattices.phi6(L=L, mu2=2.2866)
    start = 0.5 * np.asarray(model.sample_prior(jax.random.key(0), GROUPS * CHAINS)).reshape(GROUPS, CHAINS, L, L)
    energy = np.linspace(-L * L, 0.1 * L * L, 50)

    with mock.patch.object(multicanonical_chains, "set_size", lambda *shape: together):
        qp.multicanonical(model, start, energy, -energy, sweeps=16, warm_up=0)  # compiles
        timer = harness.Timer()
        walk = qp.multicanonical(model, start, energy, -energy, sweeps=SWEEPS[L], warm_up=0)
        wall, processor = timer.wall, timer.processor
    spent = walk.attrs["gradients"] * L * L / 1e6
    return spent / wall, spent / processor


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SWEEPS), choices=list(SWEEPS), metavar="L")
    chosen = parser.parse_args(arguments)
    columns = {"L": "3d", "groups together": "d", "M site-gradients/s": ".0f", "per s of processor": ".0f"}
    table = harness.Table(columns)
    for L in chosen.sizes:
        usual = set_size(GROUPS, CHAINS, L * L)
        for together in (16, 8, 4, 2, 1):
            table.add(L, together, *rates(L, together), note="in use" if together == usual else "")
    harness.save("replica_sets", table.rows)


if __name__ == "__main__":
    main()
