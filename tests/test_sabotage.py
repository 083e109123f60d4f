"""Does every row of `sabotage.py` still name a line of the code?  One whose line is gone proves nothing."""

from __future__ import annotations

import pytest

from tests.sabotage import BREAKS, ROOT


@pytest.mark.parametrize("row", BREAKS, ids=lambda row: row.name)
def test_the_line_of_a_row_stands_once(row):
    assert (ROOT / row.file).read_text().count(row.line) == 1
    assert row.broken != row.line
    assert (ROOT / row.test.split()[0]).is_file()
