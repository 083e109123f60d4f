"""Sizes of a study on a local Dask cluster: time with one and with two workers, and whether the bits are the usual ones.

    python -m benchmarks.speed.cluster --sizes 6 8 10 12
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from distributed import Client, LocalCluster

import workflows
from benchmarks import harness

STUDY = {"bracket": (-1.35, -1.2), "model": "phi4", "lam": 0.25, "progress": False}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 8, 10, 12])
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=4)
    chosen = parser.parse_args(arguments)
    study = STUDY | {"particles": chosen.particles, "replicas": chosen.replicas}
    begun = time.monotonic()
    alone = workflows.finite_size_scaling(chosen.sizes, **study)
    print(f"no cluster   {time.monotonic() - begun:7.1f} s", flush=True)
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            client.run(lambda: workflows.finite_size_scaling)  # imports are not what is measured
            begun = time.monotonic()
            found = workflows.finite_size_scaling(chosen.sizes, client=client, **study)
            seconds = time.monotonic() - begun
        same = all(np.array_equal(alone[name], found[name], equal_nan=True) for name in alone.data_vars)
        print(f"{workers} worker(s)  {seconds:7.1f} s, bits {'the same' if same else 'DIFFERENT'}", flush=True)


if __name__ == "__main__":
    main()
