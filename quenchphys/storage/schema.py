"""The variables of a ladder file and of a walk file: one table, from which everything that names them follows.

Labels of new ladders, the checks of `quenchphys.load`, the docstrings of `Ladder` and `Walk` and the tables in
docs/how-to/files.md are made from the rows below, or tested against them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import xarray as xr

LADDER_FORMAT = "quenchphys ladder 1"
WALK_FORMAT = "quenchphys walk 1"
OLDER_LADDER_FORMATS = ("quenchphys-ladder",)

OBSERVABLE = "<observable>"  # stands for every observable of the problem
AXES = "..."  # stands for the axes of a configuration

When = Literal["always", "not temper", "temper", "nested", "optional"]
"""Which files have a variable; an optional one is written too, but a file without it can be read."""
METHODS = ("quench", "temper", "nested", "bridge")
TEMPERED = ("temper", "bridge")
"""Methods whose levels are inverse temperatures; those of all others are energies."""

# Kinds of numbers that a file may have for a type: other precisions will do.
KINDS = {"float32": "f", "float64": "f", "int32": "iu", "int64": "iu", "bool": "biu", "str": "UOT"}


class Row(NamedTuple):
    """One variable of a file."""

    group: str
    name: str
    dims: tuple[str, ...]
    dtype: str
    long_name: str
    units: str = "1"
    when: When = "always"

    @property
    def place(self) -> str:
        """Path of the variable in its file."""
        return f"{self.group}/{self.name}" if self.group else self.name

    def needed(self, method: str) -> bool:
        """Whether a file of this method without the variable is incomplete."""
        if self.name == OBSERVABLE:
            return False
        if self.when in ("temper", "not temper"):
            return (method in TEMPERED) == (self.when == "temper")
        return self.when in ("always", method)


R_L = ("replica", "level")
R_L_P = ("replica", "level", "particle")
R_D = ("replica", "draw")
R_S = ("replica", "sample")
G_S_C = ("group", "sweep", "chain")

LADDER = (
    Row("levels", "energy", R_L, "float32", "level energy E: density prior * (E - U)_+^softness", "nats", "not temper"),
    Row("levels", "beta", R_L, "float32", "inverse temperature: density prior * exp(-beta U)", "1", "temper"),
    Row("levels", "log_volume", R_L, "float64", "log of the volume G of the level, the prior average of its factor"),
    Row("levels", "log_volume_err", R_L, "float64", "spread of log G by order statistics", when="nested"),
    Row("levels", "acceptance", R_L, "float32", "mean acceptance probability", when="optional"),
    Row("levels", "step_size", R_L, "float32", "step size, in units of the scale of a coordinate", when="optional"),
    Row("levels", "displacement", R_L, "float32", "root mean square move of a coordinate, in its scale", when="optional"),
    Row("levels", "ess", R_L, "float32", "effective sample size, as a fraction of the particles", when="optional"),
    Row("levels", "lineages", R_L, "int32", "number of distinct ancestors at level 0", when="optional"),
    Row("levels", "resampled", R_L, "bool", "whether the level began with a resampling", when="optional"),
    Row("levels", "undefined", R_L, "float32", "share of proposals with undefined (NaN) energy", when="optional"),
    Row("levels", "transitions", R_L, "int32", "transitions of the kernel at the level", when="optional"),
    Row("levels", "evaluations", R_L, "int64", "energies computed at the level", when="nested"),
    Row("levels", "level_count", ("replica",), "int64", "number of levels of the replica", when="optional"),
    Row(
        "levels",
        "correlation",
        (*R_L, "quantity"),
        "float32",
        "correlation of a quantity before and after the mutation of the level",
        when="optional",
    ),
    Row("levels", "quantity", ("quantity",), "str", "names of these quantities", when="optional"),
    Row("particles", "energy", R_L_P, "float32", "energy U of the particle", "nats"),
    Row("particles", "log_weight", R_L_P, "float32", "log of the carried weight; weights of a level add up to one"),
    Row(
        "particles",
        "parent",
        R_L_P,
        "int32",
        "parent at the level before; at level 0, the prior draw (nested: its start)",
        when="optional",
    ),
    Row("particles", OBSERVABLE, R_L_P, "float32", "each observable of the particle"),
    Row("prior", "energy", R_D, "float32", "energy U of the prior draw", "nats"),
    Row("prior", OBSERVABLE, R_D, "float32", "each observable of the prior draw"),
    Row("configurations", "field", (*R_S, AXES), "float32", "configuration, drawn by weight from its level"),
    Row("configurations", "level", R_S, "int32", "level of the configuration; -1: a prior draw, or none"),
    Row("configurations", "particle", R_S, "int32", "index of its particle in the level, or of the prior draw; -1: none"),
)

WALK = (
    Row("", "energy", G_S_C, "float32", "energy U of the sample", "nats"),
    Row("", OBSERVABLE, G_S_C, "float32", "each observable of the sample"),
    Row("", "log_w", G_S_C, "float64", "log of the multicanonical weight w at the energy of the sample"),
    Row("", "prior_log_w", ("group", "draw"), "float64", "log w at exact draws from the prior, the absolute scale of Z"),
    Row("", "last", ("group", "chain", AXES), "float32", "configuration after the last sweep"),
    Row("", "acceptance", ("group",), "float32", "mean acceptance probability", when="optional"),
    Row("", "step_size", ("group",), "float32", "step size, in units of the scale of a coordinate"),
    Row("", "scale", ("group", "coordinate"), "float32", "scale of each sampled coordinate"),
    Row("", "weight_energy", ("node",), "float64", "ascending energies at which the weight is given", "nats"),
    Row("", "weight_log", ("node",), "float64", "log w at these energies"),
)

LADDER_GROUPS = tuple(dict.fromkeys(row.group for row in LADDER))


def labelled(data: xr.Dataset, rows: Iterable[Row], group: str = "") -> xr.Dataset:
    """The dataset with long names and units; a variable that brings its own keeps them."""
    known = {row.name: row for row in rows if row.group == group}
    data = data.copy()
    for name, variable in data.variables.items():
        row = known.get(str(name))
        variable.attrs.setdefault("long_name", row.long_name if row else str(name))
        variable.attrs.setdefault("units", row.units if row else "1")
    return data


def first_fault(data: xr.Dataset, rows: Iterable[Row], method: str, group: str = "") -> str | None:
    """The first variable that is missing or unlike its row, in words; None if all are as they must be."""
    for row in rows:
        if row.group != group:
            continue
        if row.name not in data.variables:
            if row.needed(method):
                return f"the variable {row.place} is missing"
            continue
        found = data[row.name]
        fixed = tuple(dim for dim in row.dims if dim != AXES)
        if found.dims[: len(fixed)] != fixed or (len(found.dims) > len(fixed) and AXES not in row.dims):
            return f"the variable {row.place} has the dimensions {found.dims}, not {row.dims}"
        if found.dtype.kind not in KINDS[row.dtype]:
            return f"the variable {row.place} has the type {found.dtype}, not {row.dtype}"
    return None


def as_text(rows: Iterable[Row]) -> str:
    """The rows in columns, for a docstring."""
    lines, before = [], None
    for row in rows:
        header = (row.group, row.dims)
        if header != before:
            lines.append(f"{row.group}  [{', '.join(row.dims)}]".strip())
            before = header
        notes = [row.units] * (row.units != "1") + [f"{row.when} only"] * (row.when in ("temper", "nested"))
        notes += [row.when] * (row.when in ("not temper", "optional"))
        lines.append(f"  {row.name:<14}{row.long_name}" + (f" ({', '.join(notes)})" if notes else ""))
    return "\n".join(lines)


def as_markdown(rows: Iterable[Row]) -> str:
    """The rows as a table of the documentation."""
    lines = ["| Variable | Dimensions | Type | Meaning | Units | When |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (f"`{row.place}`", ", ".join(row.dims), row.dtype, row.long_name, row.units, row.when)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
