"""A run on its way, and how it becomes arrays for a checkpoint and comes back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.problem import ProblemView
from quenchphys.settings import Settings
from quenchphys.smc.density import Point
from quenchphys.smc.evidence import Account
from quenchphys.smc.levels import Family
from quenchphys.smc.step import State
from quenchphys.stopping import StopRule
from quenchphys.storage.album import Album
from quenchphys.storage.build_ladder import plain
from quenchphys.storage.checkpoint import Arrays, Store
from quenchphys.storage.record import Record
from quenchphys.tuning.dual_averaging import DualAveraging
from quenchphys.tuning.mutation_count import MutationCount

FORMAT = 3  # of a checkpoint
GROUPS = ("point", "seen", "tuner")  # parts of a state that have parts


@dataclass
class Course:
    """A run on its way: the population on the device, and on the host what was learnt from it."""

    state: Any
    account: Account
    pace: MutationCount
    record: Record
    album: Album
    prior: dict[str, np.ndarray]
    undefined: np.ndarray
    parent: np.ndarray  # of the first level


def resume(
    kept: tuple[Arrays, Arrays, Arrays],
    family: Family,
    rule: StopRule,
    schedule: np.ndarray | None,
    pace: MutationCount,
    album_size: int,
    folder: Path,
) -> Course:
    """Take up a run where its checkpoint left it."""
    once, state, host = kept
    prior = {name.removeprefix("prior "): value for name, value in once.items() if name.startswith("prior ")}
    account = Account(family, once["log_first"], prior["energy"], rule, adaptive=schedule is None)
    account.resume(_under("account", host))
    record = Record.resume(folder, account.levels)
    album = Album.resume(album_size, _under("album", host))
    pace.resume(_under("pace", host))
    return Course(state_from(state), account, pace, record, album, prior, once["undefined"], once["parent"])


def save(course: Course, store: Store) -> None:
    """Keep the course as it is now; the record must be on disk before the state that relies on it."""
    course.record.flush()
    host = {f"account {name}": value for name, value in course.account.state().items()}
    host |= {f"pace {name}": value for name, value in course.pace.state().items()}
    host |= {f"album {name}": value for name, value in course.album.state().items()}
    store.save(course.account.levels, state_to(course.state), host)


def state_to(state: State) -> Arrays:
    """The population as plain arrays; random keys by their words."""
    plain = state._replace(key=jax.random.key_data(state.key), common=jax.random.key_data(state.common))
    parts = plain._asdict()
    for group in GROUPS:
        inner = parts.pop(group)
        inner = inner if isinstance(inner, dict) else inner._asdict()
        parts |= {f"{group} {name}": value for name, value in inner.items()}
    return to_host(parts)


def state_from(arrays: Arrays) -> State:
    parts: dict[str, Any] = dict(arrays)  # numpy on the host is as good as an array of the device
    kinds = (Point, dict, DualAveraging)
    groups = {group: make(**_under(group, parts)) for group, make in zip(GROUPS, kinds, strict=True)}
    rest = {name: value for name, value in parts.items() if name in State._fields}
    keys = {name: jax.random.wrap_key_data(rest.pop(name), impl=GENERATOR) for name in ("key", "common")}
    return State(**groups, **keys, **rest)


def identity(
    problem: ProblemView,
    method: str,
    family: Family,
    settings: Settings,
    stop: StopRule,
    schedule: np.ndarray | None,
) -> dict[str, Any]:
    """What must be the same for a run to go on: said in the checkpoint, compared when it is taken up."""
    from quenchphys import __version__

    # A model may say nothing about itself: the energies of a few draws tell two of them apart.
    draws = problem.sample_prior(jax.random.key(0), 4)
    return {
        "format": FORMAT,
        "quenchphys": __version__,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        "method": method,
        "model": problem.name,
        "parameters": problem.parameters,
        "energies": [float(energy).hex() for energy in jax.vmap(problem.energy)(draws)],
        "settings": plain(settings),
        "family": repr(family),
        "stop": repr(stop),
        "schedule": None if schedule is None else [float(value) for value in schedule],
    }


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(f"{prefix} "): value for name, value in arrays.items() if name.startswith(f"{prefix} ")}
