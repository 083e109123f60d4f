"""The state of an unfinished run, and how it becomes arrays for a checkpoint and comes back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenchphys.identity import fingerprint
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.smc.assignment import Assignment, plain
from quenchphys.smc.density import Point
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.step import State
from quenchphys.storage.album import Album
from quenchphys.storage.checkpoint import Arrays, Generation, Store
from quenchphys.storage.record import Record
from quenchphys.tuning.dual_averaging import DualAveraging
from quenchphys.tuning.mutation_count import MutationCount
from quenchphys.version import __version__

FORMAT = 7  # of a checkpoint
GROUPS = ("point", "seen", "tuner")  # parts of a state that have parts


@dataclass
class RunState:
    """An unfinished run: the population on the device, and on the host what was learnt from it."""

    state: State
    evidence: Evidence
    pace: MutationCount
    record: Record
    album: Album
    prior: dict[str, np.ndarray]
    """Energy and observables of the prior draws."""
    drawn: np.ndarray
    """Configurations of the first of them, (replica, draw, ...)."""
    undefined: np.ndarray
    """Prior draws with undefined energy."""
    parent: np.ndarray
    """Prior draws that the particles of the first level are copies of."""


def resume(work: Assignment, kept: Generation, folder: Path) -> RunState:
    """Continue a run from its checkpoint; `folder` holds the record."""
    once, host = kept.once, kept.host
    prior = under("prior", once)
    evidence = Evidence(work.family, once["log_first"], prior["energy"], work.rule, work.adaptive)
    evidence.resume(under("evidence", host))
    pace = MutationCount(work.settings.kernel, work.dimension)
    pace.resume(under("pace", host))
    return RunState(
        state=state_from(kept.state),
        evidence=evidence,
        pace=pace,
        record=Record.resume(folder, evidence.levels),
        album=Album.resume(work.album_size, under("album", host)),
        prior=prior,
        drawn=once["drawn"],
        undefined=once["undefined"],
        parent=once["parent"],
    )


def save(course: RunState, store: Store) -> None:
    """Write the state as it is now; the record must be on disk before the state that relies on it."""
    course.record.flush()
    parts = {"evidence": course.evidence.state(), "pace": course.pace.state(), "album": course.album.state()}
    host = {f"{part} {name}": value for part, arrays in parts.items() for name, value in arrays.items()}
    store.save(course.evidence.levels, state_to(course.state), host | course.record.seal())


def state_to(state: State) -> Arrays:
    """The population as plain arrays; random keys by their words."""
    bare = state._replace(key=jax.random.key_data(state.key), common=jax.random.key_data(state.common))
    parts = bare._asdict()
    for group in GROUPS:
        inner = parts.pop(group)
        inner = inner if isinstance(inner, dict) else inner._asdict()
        parts |= {f"{group} {name}": value for name, value in inner.items()}
    return to_host(parts)


def state_from(arrays: Arrays) -> State:
    """The inverse of `state_to`."""
    parts: dict[str, Any] = dict(arrays)  # programs take arrays of the host as well
    kinds = (Point, dict, DualAveraging)
    groups = {group: make(**under(group, parts)) for group, make in zip(GROUPS, kinds, strict=True)}
    rest = {name: value for name, value in parts.items() if name in State._fields}
    keys = {name: jax.random.wrap_key_data(rest.pop(name), impl=GENERATOR) for name in ("key", "common")}
    return State(**groups, **keys, **rest)


def identity(work: Assignment) -> dict[str, Any]:
    """What must be the same for a run to continue; the number of devices is no part of it."""
    return {
        "format": FORMAT,
        "quenchphys": __version__,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        "method": work.method,
        "problem": fingerprint(work.problem),
        "settings": plain(work.settings),
        "family": repr(work.family),
        "stop": repr(work.stop),
        "schedule": None if work.schedule is None else [float(value) for value in work.schedule],
    }


def under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays whose names begin with a word, without it."""
    return {name.removeprefix(f"{prefix} "): value for name, value in arrays.items() if name.startswith(f"{prefix} ")}
