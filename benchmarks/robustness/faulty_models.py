"""What `quenchphys.check` says of faulty models, and how long it takes for sound ones.

    python -m benchmarks.robustness.faulty_models

The models are those of its tests.  Times are of the processor, of the first call, which compiles, and of the next; the
compilation cache of JAX is off.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax

import quenchphys as qp
from benchmarks import harness
from tests.quenchphys.consistency.test_consistency import FAULTS, SOUND, faulty


def seconds(problem: Any) -> float:
    """Processor time of a check, whatever it says."""
    begun = time.process_time()
    qp.check(problem)
    return time.process_time() - begun


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    jax.config.update("jax_enable_compilation_cache", False)
    for number, (name, (parts, _)) in enumerate(FAULTS.items(), start=1):
        try:
            qp.check(faulty(**parts))
            said = "NOT REFUSED"
        except ValueError as refused:
            said = str(refused)
        print(f"{number:2d}. {name}: {said}", flush=True)
    table = harness.Table({"sound model": "40s", "first": ".2f", "next": ".2f"})
    for name, problem in SOUND.items():
        table.add(name, seconds(problem), seconds(problem))


if __name__ == "__main__":
    main()
