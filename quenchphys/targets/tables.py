"""Tables of labelled examples: read from a CSV file, split into training and test data, standardised.

Every fault of a file is refused in one sentence that names the row or column, before anything is sampled.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # in lower case
SHOWN = 8  # names listed in a message


@dataclass(frozen=True)
class Table:
    """Numeric columns and the class of every row.

    Parameters
    ----------
    name
        Name of the file, without its folder.
    columns
        Names of the inputs.
    inputs
        (row, column), as they are in the file.
    classes
        Names of the classes, in the order of their numbers.
    labels
        (row,), the number of the class of every row.

    Examples
    --------
    >>> table = qp.targets.tables.read_table("sonar.csv")
    >>> table.inputs.shape, table.classes
    """

    name: str
    columns: tuple[str, ...]
    inputs: Array
    classes: tuple[str, ...]
    labels: Array


@dataclass(frozen=True)
class Split:
    """Training and test data; inputs have mean 0 and variance 1 over the training data.

    Examples
    --------
    >>> split = qp.targets.tables.split_table(table, test=0.2, seed=0)
    """

    inputs: Array
    labels: Array
    test_inputs: Array
    test_labels: Array


def digest(*data: Any) -> str:
    """A short text that is equal for equal training data, for which evidences can be compared."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in data)).hexdigest()[:16]


def read_table(
    path: str | os.PathLike[str],
    label: str = "label",
    classes: Mapping[Any, Any] | None = None,
    missing: str = "refuse",
) -> Table:
    """Read a CSV file with a header row, one column of classes, and numbers in all others.

    Parameters
    ----------
    path
        The file.
    label
        Name of the column of classes: words or whole numbers.
    classes
        {label: class}, if several labels are one class, or labels are not whole numbers.
    missing
        What to do with rows that lack a value (empty, "?", "NA" and the like): "refuse" or "drop".

    Returns
    -------
    Table
        Its classes are in the order of their names, numbers by size.

    Examples
    --------
    >>> read_table("heart.csv", classes={0: 0, 1: 1, 2: 1, 3: 1, 4: 1}, missing="drop").inputs.shape
    (297, 13)
    """
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing must be 'refuse' or 'drop'; {missing!r} was given")
    path = Path(path)
    header, rows = _read(path)
    if label not in header:
        raise ValueError(f"{path} has no column {label!r} for the classes; its columns are {_listed(header)}")
    if len(header) < 2:
        raise ValueError(f"{path} has no column beside {label!r}, so there is nothing to predict the class from")
    kept = [(line, row) for line, row in rows if not _lacks(path, header, line, row, missing)]
    if not kept:
        raise ValueError(f"{path} has no row without missing values")
    where = header.index(label)
    columns = tuple(name for name in header if name != label)
    inputs = np.array([_numbers(path, header, where, line, row) for line, row in kept])
    names = _names(path, [(line, row[where]) for line, row in kept], classes)
    known = sorted(set(names), key=_order)
    if len(known) < 2:
        raise ValueError(
            f"{path} has only one class, {known[0]!r}, in column {label!r}; a classifier needs at least two"
        )
    number = {name: k for k, name in enumerate(known)}
    return Table(path.name, columns, inputs, tuple(known), np.array([number[name] for name in names]))


def split_table(table: Table, test: float, seed: int, stratified: bool = True) -> Split:
    """Put a share of the rows aside for testing, and standardise all inputs with the training rows.

    Parameters
    ----------
    table
        All rows.
    test
        Share of the rows that is put aside, between 0 and 1.
    seed
        Seed of the random choice.
    stratified
        Take this share of every class, rounded, but at least one row; else of all rows together.

    Returns
    -------
    Split
        Every class is in both parts.  A column that is constant over the training rows is only shifted, to zero.

    Examples
    --------
    >>> split_table(table, 0.1, seed=0).test_labels
    """
    _check_split(test, seed)
    rng = np.random.default_rng(seed)
    if stratified:
        members = [rng.permutation(np.flatnonzero(table.labels == k)) for k in range(len(table.classes))]
        aside = np.concatenate([some[: max(1, math.floor(test * len(some) + 0.5))] for some in members])
    else:
        aside = rng.permutation(len(table.labels))[: math.ceil(test * len(table.labels))]
    chosen = np.zeros(len(table.labels), bool)
    chosen[aside] = True
    for part, rows in (("test", chosen), ("training", ~chosen)):
        _check_classes(table, part, rows, seed, stratified)
    train = table.inputs[~chosen]
    # The spread of a constant column may be a rounding error instead of zero.
    spread = np.where(np.ptp(train, axis=0) > 0, train.std(axis=0), 1.0)
    scaled = ((table.inputs - train.mean(axis=0)) / spread).astype(np.float32)
    labels = table.labels.astype(np.int32)
    return Split(scaled[~chosen], labels[~chosen], scaled[chosen], labels[chosen])


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and every row with its line number."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; a CSV file is needed")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (UnicodeDecodeError, csv.Error) as cause:
        raise ValueError(f"{path} cannot be read as a CSV file: {cause}") from cause
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        raise ValueError(f"{path} is empty; a header row and rows of numbers are needed")
    header, rows = lines[0][1], lines[1:]
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise ValueError(f"{path} has more than one column {twice[0]!r}; names in the header row must differ")
    if not all(header):
        raise ValueError(f"{path} has a column without a name in its header row")
    if not rows:
        raise ValueError(f"{path} has a header row but no other rows")
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(f"line {number} of {path} has {len(row)} values; the header row has {len(header)} names")
    return header, rows


def _lacks(path: Path, header: Sequence[str], line: int, row: Sequence[str], missing: str) -> bool:
    """Whether a row lacks a value; refused, unless such rows are dropped."""
    lacking = [name for name, cell in zip(header, row, strict=True) if cell.lower() in MISSING]
    if lacking and missing == "refuse":
        raise ValueError(
            f"line {line} of {path} has no value in column {lacking[0]!r}; missing='drop' leaves out such rows"
        )
    return bool(lacking)


def _numbers(path: Path, header: Sequence[str], label: int, line: int, row: Sequence[str]) -> list[float]:
    """The inputs of a row."""
    found = []
    for place, cell in enumerate(row):
        if place == label:
            continue
        try:
            found.append(float(cell))
        except ValueError:
            raise ValueError(
                f"column {header[place]!r} of {path} must hold numbers; line {line} has {cell!r} (code categories as "
                "numbers, or remove the column)"
            ) from None
        if not math.isfinite(found[-1]):
            raise ValueError(f"column {header[place]!r} of {path} must hold finite numbers; line {line} has {cell!r}")
    return found


def _names(path: Path, cells: Sequence[tuple[int, str]], classes: Mapping[Any, Any] | None) -> list[str]:
    """The class of every row."""
    if classes is not None:
        known = {str(name): str(to) for name, to in classes.items()}
        for line, cell in cells:
            if cell not in known:
                raise ValueError(
                    f"line {line} of {path} has the label {cell!r}, which classes does not mention; it has "
                    f"{_listed(list(known))}"
                )
        return [known[cell] for _, cell in cells]
    for line, cell in cells:
        if _is_float(cell):
            raise ValueError(
                f"labels must be words or whole numbers; line {line} of {path} has {cell!r} (classes={{...}} gives such "
                "labels a class)"
            )
    return [cell for _, cell in cells]


def _is_float(cell: str) -> bool:
    """Whether a label is a number, but not a whole one."""
    try:
        int(cell)
    except ValueError:
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return False


def _order(name: str) -> tuple[bool, int, str]:
    """Numbers by size, then words."""
    try:
        return (False, int(name), name)
    except ValueError:
        return (True, 0, name)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + more


def _check_split(test: Any, seed: Any) -> None:
    if isinstance(test, bool) or not isinstance(test, int | float | np.number) or not 0 < test < 1:
        raise ValueError(f"test, the share of rows put aside, must be between 0 and 1; {test!r} was given")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"split, the seed of the choice of test rows, must be a whole number from 0 on; {seed!r} was given")


def _check_classes(table: Table, part: str, rows: Array, seed: int, stratified: bool) -> None:
    absent = [name for k, name in enumerate(table.classes) if not np.any(table.labels[rows] == k)]
    if absent:
        count = int(np.sum(table.labels == table.classes.index(absent[0])))
        way = "merge it with another one by classes={...}" if stratified else "use stratified=True or another split"
        raise ValueError(
            f"the {part} data of {table.name} (split={seed}) have no member of class {absent[0]!r}, of which there "
            f"{'is' if count == 1 else 'are'} {count} in all; {way}"
        )
