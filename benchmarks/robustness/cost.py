"""What locks, fingerprints and digests cost a study, in processor time.

    python -m benchmarks.robustness.cost [--L N] [--particles N] [--replicas N]

Z(beta) of phi^6 with its output in a file, twice, each time in a process of its own: the first fills the cache of compiled
programs, the second is measured.  Every function that exists only so that studies cannot be mixed up or lost is timed from
its call to its return, all threads together; the digest of the record, which grows with it, by the speed of SHA-256 and the
bytes of the record.  The start of a study is everything before its first level is sampled.  Whatever JAX compiles first in
a process takes longer, because JAX itself starts; that is timed apart, and no part of the sum, since a run without any of
these functions would pay for it as well.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import harness

TIMED = {
    "fingerprint": ["quenchphys.identity._fingerprint"],
    "comparison of requests": ["workflows.store.difference", "quenchphys.storage.checkpoint.difference"],
    "lock": ["quenchphys.storage.lock.Lock.__init__", "quenchphys.storage.lock.Lock.release"],
    "leftovers": ["workflows.store.remove_leftovers", "quenchphys.storage.checkpoint.remove_leftovers"],
    "digests": [
        "quenchphys.storage.checksum._digest",
        "quenchphys.storage.record._digest",
        "quenchphys.storage.checkpoint.digest",
    ],
}


def measure(L: int, particles: int, replicas: int) -> dict[str, Any]:
    """Processor seconds of each kind, at the start and in all."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import lattices
    import workflows
    from quenchphys.smc import loop
    from quenchphys.storage.record import Record

    spent: Counter[str] = Counter()
    at_start: dict[str, float] = {}
    recorded = 0

    def timed(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                spent[kind] += time.process_time() - begun

        return call

    def begin(*arguments: Any) -> Any:
        at_start.update(spent)
        return usual_begin(*arguments)

    def finish(record: Record, rows: int) -> Any:
        nonlocal recorded
        found = usual_finish(record, rows)
        recorded = sum(array.nbytes for array in found.values())
        return found

    timer = harness.Timer()
    jax.block_until_ready(jax.jit(lambda x: jnp.sin(x).sum())(np.zeros(4, np.float32)))
    start_of_jax = timer.processor
    usual_begin, usual_finish = loop.begin, Record.finish
    model = lattices.phi6(L=L, mu2=2.286)
    with tempfile.TemporaryDirectory() as place:
        patches = [patch(name, timed(kind, pkgutil.resolve_name(name))) for kind, names in TIMED.items() for name in names]
        patches += [patch("quenchphys.smc.loop.begin", begin), patch.object(Record, "finish", finish)]
        for each in patches:
            each.start()
        timer = harness.Timer()
        workflows.partition_function(
            model, particles=particles, replicas=replicas, out=Path(place) / "z.nc", progress=False
        )
        whole = timer.processor
    begun = time.process_time()
    hashlib.sha256(bytes(1 << 26))
    spent["digest of the record as it grows"] = (time.process_time() - begun) / (1 << 26) * recorded
    return {"whole": whole, "spent": spent, "at_start": at_start, "record": recorded, "start_of_jax": start_of_jax}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, default=16)
    parser.add_argument("--particles", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--measure", action="store_true", help="in this process (used by the script itself)")
    chosen = parser.parse_args(arguments)
    size = {name: getattr(chosen, name) for name in ("L", "particles", "replicas")}
    if chosen.measure:
        print(json.dumps(measure(**size)))
        return 0
    given = [word for name, value in size.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "benchmarks.robustness.cost", "--measure", *given]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=harness.environment())
        if done.returncode:
            print(done.stderr)
            return 1
    found = json.loads(done.stdout.splitlines()[-1])
    table = harness.Table({"what": "34s", "at the start (s)": ".4f", "in all (s)": ".4f", "of the run": ".3%"})
    for kind, seconds in found["spent"].items():
        table.add(kind, found["at_start"].get(kind, 0.0), seconds, seconds / found["whole"])
    total, start = sum(found["spent"].values()), sum(found["at_start"].values())
    table.add("together", start, total, total / found["whole"])
    print(
        f"\nthe run: {found['whole']:.1f} s of processor time, a record of {found['record'] / 1e6:.0f} MB; "
        f"the start of JAX: {found['start_of_jax']:.3f} s"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
