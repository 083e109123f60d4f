"""The table of variables: what is written, documented and read back is what it says."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest

import quenchphys as qp
from quenchphys.storage import schema
from quenchphys.storage.schema import AXES, LADDER, LADDER_GROUPS, OBSERVABLE, WALK, Row

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "files.md"
TARGET, SMALL = qp.targets.gaussian(16), {"particles": 64, "replicas": 2, "stop": qp.LevelLimit(20)}


def expected(row: Row, ladder: qp.Ladder) -> list[str]:
    """Names of the variables that a row stands for."""
    if row.name == OBSERVABLE:
        return ladder.observables
    return [row.name] if row.needed(ladder.method) or row.when == "optional" else []


@pytest.mark.parametrize("run", [qp.quench, qp.temper])
def test_a_new_ladder_has_the_variables_of_the_table_and_no_others(run):
    stop = {} if run is qp.quench else {"stop": qp.LevelLimit(3)}
    ladder = run(TARGET, **SMALL | stop)
    for group in LADDER_GROUPS:
        rows = {name: row for row in LADDER if row.group == group for name in expected(row, ladder)}
        data = ladder.tree[group].to_dataset()
        assert set(data.variables) == set(rows)
        for name, row in rows.items():
            variable = data[name]
            assert row.dtype == "str" or variable.dtype == row.dtype, name
            assert AXES in row.dims or variable.dims == row.dims, name
            if row.name != OBSERVABLE:
                assert (variable.attrs["long_name"], variable.attrs["units"]) == (row.long_name, row.units)


@pytest.mark.parametrize(("kind", "rows"), [(qp.Ladder, LADDER), (qp.Walk, WALK)])
def test_docstrings_list_the_table(kind, rows):
    text = textwrap.indent(schema.as_text(rows), "    ")
    assert f"\n\n{text}\n\n" in inspect.getdoc(kind), f"the docstring of {kind.__name__} should contain\n{text}"


@pytest.mark.parametrize("rows", [LADDER, WALK])
def test_the_page_of_files_shows_the_table(rows):
    table = schema.as_markdown(rows)
    assert f"\n\n{table}\n\n" in PAGE.read_text(), f"docs/how-to/files.md should contain\n{table}"


def test_no_row_stands_twice():
    for rows in (LADDER, WALK):
        assert len({row.place for row in rows}) == len(rows)
