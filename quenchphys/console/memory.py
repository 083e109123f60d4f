"""What does a run need that the machine may not have?  Memory: refused before, and in words if it runs out."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import jax

from quenchphys.parallel.processes import ProcessLost, lost
from quenchphys.settings import Settings

ARRAYS = 3  # a prior draw and its two gradients
NUMBER = 4  # bytes
GB = 1e9
FULL = 0.9  # share of the memory in use above which a failure is put down to it


def check_memory(settings: Settings, dimension: int) -> None:
    """Refuse a run whose prior draws, all on the devices at once, cannot fit; an accelerator knows its own memory."""
    draws = settings.replicas * settings.particles * settings.draws_per_particle
    needed, there = ARRAYS * NUMBER * draws * dimension / jax.process_count(), host_memory()
    if jax.default_backend() == "cpu" and needed > there:
        why = f"its prior draws need about {needed / GB:.1f} GB, and this process may have {there / GB:.1f} GB"
        raise MemoryError(_sentence(settings, why))


@contextmanager
def in_words(settings: Settings) -> Iterator[None]:
    """Turn what a device says when it fails into one sentence."""
    try:
        yield
    except MemoryError as cause:
        if str(cause).startswith(BEGINNING):
            raise
        raise MemoryError(_sentence(settings, "the host has no more")) from None
    except jax.errors.JaxRuntimeError as cause:
        said = str(cause).strip()
        if "RESOURCE_EXHAUSTED" in said or "out of memory" in said.lower() or nearly_full():
            raise MemoryError(_sentence(settings, "the device has no more")) from None
        if lost(cause):
            raise ProcessLost(
                "Another process of this run has ended, so this one ends too; started again with the same checkpoint, all "
                "of them go on from it."
            ) from None
        raise RuntimeError(f"The device failed: {_telling(said)}.") from None


def host_memory() -> float:
    """Bytes this process may have: what is built in, or what it was limited to."""
    built_in = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return built_in if soft == resource.RLIM_INFINITY else min(built_in, float(soft))


def nearly_full() -> bool:
    """Whether little memory is left: parts of a device report any failure to get some as an internal error."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        with open("/proc/self/statm") as file:
            used = float(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        with open("/proc/meminfo") as file:
            free = float(next(line for line in file if line.startswith("MemAvailable")).split()[1]) * 1024
    except (OSError, StopIteration, ValueError):  # a system that does not tell
        return False
    return (soft != resource.RLIM_INFINITY and used > FULL * soft) or free < (1 - FULL) * host_memory()


BEGINNING = "The run does not fit into memory"


def _sentence(settings: Settings, why: str) -> str:
    return (
        f"{BEGINNING}: {why}; lower particles ({settings.particles}), replicas ({settings.replicas}) or draws_per_particle "
        f"({settings.draws_per_particle}), or keep fewer configurations ({settings.configurations})."
    )


def _telling(said: str) -> str:
    """The last line that names an error, where a device repeats a whole traceback; else the first."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it does not say why"]
    named = [line for line in lines[1:] if line.split(":")[0].endswith(("Error", "Exception"))]
    return (named[-1] if named else lines[0])[:300].rstrip(".")
