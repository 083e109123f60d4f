"""Symmetries of a problem: they keep its energy, its prior and the length of displacements."""

from __future__ import annotations

from quenchphys.consistency.comparison import scale_of, worst
from quenchphys.consistency.measurement import Found


def check_symmetries(found: Found) -> None:
    for number, (pushed, length) in enumerate(found["isometry"]):
        for name, word in (("energy", "the energy"), ("log_prior", "log_prior")):
            value, turned = found[name]["value"], found[name]["turned"][number]
            if (at := worst(turned, value, scale_of(value))) is not None:
                raise ValueError(
                    f"symmetry {number} changes {word} of a prior draw from {value[at]:.6g} to {turned[at]:.6g}; "
                    "it must keep it"
                )
        if (at := worst(pushed, length, length)) is not None:
            raise ValueError(
                f"symmetry {number} turns a displacement of length {length[at]:.6g} into one of {pushed[at]:.6g}; "
                "it must keep lengths"
            )
