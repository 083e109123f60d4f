"""Replicas of ladders with self-consistent volumes, kept while the ladder lives, because they are costly.

A ladder may be changed in place, so a checksum of everything that is read from it tells whether what was kept still holds.
"""

from __future__ import annotations

import weakref
import zlib
from typing import NamedTuple

from observables.samples.of_ladders import Replica, replicas_of
from observables.samples.shared_volumes import with_shared_volumes
from observables.samples.wham import with_self_consistent_volumes
from quenchphys.ladder import Ladder


class Kept(NamedTuple):
    """The replicas of one ladder, and the checksum of what they were made from."""

    checksum: int
    replicas: list[Replica]


_kept: dict[tuple[int, bool], Kept] = {}  # by the identity of the ladder, and whether volumes are shared


def self_consistent_replicas(ladder: Ladder, shared: bool = False) -> list[Replica]:
    """The replicas of a ladder with volumes from WHAM, computed once.

    Parameters
    ----------
    ladder
        Any ladder.
    shared
        Whether all replicas have the same volumes: those of a bridge may.

    Returns
    -------
    list of Replica
        The same objects at every call, as long as the ladder is not changed.
    """
    checksum, key = checksum_of(ladder), (id(ladder), shared)
    if key not in _kept or _kept[key].checksum != checksum:
        if key not in _kept:
            weakref.finalize(ladder, _kept.pop, key, None)
        replicas = replicas_of(ladder)
        found = with_shared_volumes(replicas) if shared else [with_self_consistent_volumes(one) for one in replicas]
        _kept[key] = Kept(checksum, found)
    return _kept[key].replicas


def checksum_of(ladder: Ladder) -> int:
    """Of all numbers and attributes that the samples of a ladder are made from."""
    found = zlib.crc32(repr(sorted(ladder.attrs.items(), key=lambda item: str(item[0]))).encode())
    for group in (ladder.levels, ladder.particles, ladder.prior):
        for name, variable in group.variables.items():
            values = variable.values
            text = f"{name} {values.dtype} {values.shape}".encode()
            data = values.tobytes() if values.dtype.kind in "biuf" else repr(values.tolist()).encode()
            found = zlib.adler32(data, zlib.crc32(text, found))
    return found
