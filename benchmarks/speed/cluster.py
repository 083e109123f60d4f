"""Sizes of a study on a local Dask cluster: time with one and with two workers, and whether the bits are the usual ones.

    python -m benchmarks.speed.cluster --sizes 6 8 10 12
    python -m benchmarks.speed.cluster --order first --sizes 4 6 8 --sweeps 320

Seconds of the clock mean something on an idle machine only; the processor time of all workers together shows what the
cluster costs on any.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import workflows
from benchmarks import harness

STUDIES: dict[str, dict[str, Any]] = {
    "first": {"bracket": (2.2, 2.5), "model": "phi6", "progress": False},
    "second": {"bracket": (-1.35, -1.2), "model": "phi4", "lam": 0.25, "progress": False},
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--order", choices=sorted(STUDIES), default="second")
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 8, 10, 12])
    parser.add_argument("--sweeps", type=int, default=800)
    chosen = parser.parse_args(arguments)
    study = STUDIES[chosen.order] | {"sweeps": chosen.sweeps}
    begun, used = time.monotonic(), time.process_time()
    alone = workflows.finite_size_scaling(chosen.sizes, **study)
    print(f"no cluster   {time.monotonic() - begun:7.1f} s, processor {time.process_time() - used:7.1f} s", flush=True)
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            client.run(lambda: workflows.finite_size_scaling)  # imports are not what is measured
            before = client.run(time.process_time)
            begun, used = time.monotonic(), time.process_time()
            found = workflows.finite_size_scaling(chosen.sizes, client=client, **study)
            seconds, own = time.monotonic() - begun, time.process_time() - used
            after = client.run(time.process_time)
        each = ", ".join(f"{after[worker] - before[worker]:.1f}" for worker in sorted(after))
        same = all(np.array_equal(alone[name], found[name], equal_nan=True) for name in alone.data_vars)
        print(
            f"{workers} worker(s)  {seconds:7.1f} s, processor {own:.1f} s here and {each} s on workers, "
            f"bits {'the same' if same else 'DIFFERENT'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
