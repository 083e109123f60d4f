"""Memory: a run that cannot fit is refused, and one that runs out of it says so in one sentence."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import jax

from quenchphys.console.messages import last_error
from quenchphys.parallel.processes import ProcessLost, lost
from quenchphys.settings import Settings

ARRAYS = 3  # a prior draw and its two gradients
NUMBER = 4  # bytes
GB = 1e9
FULL = 0.9  # share of the memory in use above which a failure is blamed on it


def check_memory(settings: Settings, dimension: int) -> None:
    """Refuse a run whose prior draws, all on the devices at once, cannot fit; an accelerator knows its own memory.

    Parameters
    ----------
    settings
        Of the run: they give the number of draws.
    dimension
        Numbers in one configuration.

    Raises
    ------
    MemoryError
        In one sentence, with what to lower.
    """
    draws = settings.replicas * settings.particles * settings.draws_per_particle
    needed, available = ARRAYS * NUMBER * draws * dimension / jax.process_count(), host_memory()
    if jax.default_backend() == "cpu" and needed > available:
        why = f"its prior draws need about {needed / GB:.1f} GB, and this process may use {available / GB:.1f} GB"
        raise MemoryError(_sentence(settings, why))


def check_fits(what: str, needed: float, advice: str) -> None:
    """Refuse a run that needs more bytes than this process may use.

    Parameters
    ----------
    what
        What needs them, such as "its draws".
    needed
        Bytes.
    advice
        What to lower.
    """
    available = host_memory()
    if needed > available:
        why = f"{what} need about {needed / GB:.1f} GB, and this process may use {available / GB:.1f} GB"
        raise MemoryError(f"{BEGINNING}: {why}; {advice}.")


@contextmanager
def in_words(settings: Settings) -> Iterator[None]:
    """Turn the errors of a device into one sentence.

    Parameters
    ----------
    settings
        Of the run: the sentence says which of them to lower.
    """
    try:
        yield
    except MemoryError as cause:
        if str(cause).startswith(BEGINNING):
            raise
        raise MemoryError(_sentence(settings, "the host ran out of memory")) from None
    except jax.errors.JaxRuntimeError as cause:
        text = str(cause)
        if "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower() or nearly_full():
            raise MemoryError(_sentence(settings, "the device ran out of memory")) from None
        if lost(cause):
            raise ProcessLost(
                "Another process of this run has ended, so this one stops too; start all of them again with the same "
                "checkpoint to continue."
            ) from None
        raise RuntimeError(f"The device failed: {last_error(cause)}.") from None


def host_memory() -> float:
    """Bytes available to this process: those of the machine, or the limit set for the process."""
    built_in = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return built_in if soft == resource.RLIM_INFINITY else min(built_in, float(soft))


def nearly_full() -> bool:
    """Whether little memory is left: a device may report a failed allocation as an internal error."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        with open("/proc/self/statm") as file:
            used = float(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        with open("/proc/meminfo") as file:
            free = float(next(line for line in file if line.startswith("MemAvailable")).split()[1]) * 1024
    except (OSError, StopIteration, ValueError):  # a system without these files
        return False
    return (soft != resource.RLIM_INFINITY and used > FULL * soft) or free < (1 - FULL) * host_memory()


BEGINNING = "The run does not fit into memory"


def _sentence(settings: Settings, why: str) -> str:
    return (
        f"{BEGINNING}: {why}; lower particles ({settings.particles}), replicas ({settings.replicas}) or draws_per_particle "
        f"({settings.draws_per_particle}), or keep fewer configurations ({settings.configurations})."
    )
