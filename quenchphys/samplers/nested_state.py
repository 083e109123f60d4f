"""The state of an unfinished nested run, and how it becomes arrays for a checkpoint and comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.identity import fingerprint
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.problem import ProblemView
from quenchphys.samplers.nested_births import Live
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.run_state import under
from quenchphys.stopping import StopRule
from quenchphys.storage.album import Album
from quenchphys.storage.checkpoint import Generation, Store
from quenchphys.storage.record import Record
from quenchphys.version import __version__

FORMAT = 1  # of a checkpoint


@dataclass
class Descent:
    """An unfinished run: the live points, and on the host what was learnt from them."""

    keys: Any
    live: Live
    evidence: Evidence
    record: Record
    album: Album
    prior: dict[str, np.ndarray]
    """Energy and observables of the prior draws, the first live points."""
    drawn: np.ndarray
    """Configurations of some of them, (replica, draw, ...)."""
    undefined: np.ndarray
    """Prior draws with undefined energy."""


def identity(model: ProblemView, settings: Mapping[str, Any], stop: StopRule) -> dict[str, Any]:
    """What must be the same for a run to continue."""
    return {
        "format": FORMAT,
        "quenchphys": __version__,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        "method": "nested",
        "problem": fingerprint(model),
        "settings": dict(settings),
        "stop": repr(stop),
    }


def keep_draws(course: Descent, store: Store) -> None:
    """Write what is made once."""
    once = {f"prior {name}": value for name, value in course.prior.items()}
    store.begin(once | {"drawn": course.drawn, "undefined": course.undefined})


def save(course: Descent, store: Store) -> None:
    """Write the state as it is now; the record must be on disk before the state that relies on it."""
    course.record.flush()
    leaves = {f"leaf {n}": leaf for n, leaf in enumerate(jax.tree.leaves(course.live))}
    state = to_host(leaves | {"keys": jax.random.key_data(course.keys)})
    parts = {"evidence": course.evidence.state(), "album": course.album.state()}
    host = {f"{part} {name}": value for part, arrays in parts.items() for name, value in arrays.items()}
    store.save(course.evidence.levels, state, host | course.record.seal())


def resume(fresh: Descent, kept: Generation, store: Store, album_size: int) -> Descent:
    """Continue a run from its checkpoint; `fresh` is the same run at its beginning."""
    leaves, structure = jax.tree.flatten(fresh.live)
    fresh.evidence.resume(under("evidence", kept.host))
    return Descent(
        keys=jax.random.wrap_key_data(jnp.asarray(kept.state["keys"]), impl=GENERATOR),
        live=jax.tree.unflatten(structure, [kept.state[f"leaf {n}"] for n in range(len(leaves))]),
        evidence=fresh.evidence,
        record=Record.resume(store.record, fresh.evidence.levels),
        album=Album.resume(album_size, under("album", kept.host)),
        prior=under("prior", kept.once),
        drawn=kept.once["drawn"],
        undefined=kept.once["undefined"],
    )
