"""The record of a growing ladder: what a finished one holds, whatever happens to its files."""

from __future__ import annotations

import numpy as np
import pytest

from quenchphys.storage.record import Record

ROWS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


@pytest.mark.parametrize("limit", [1 << 20, 10], ids=["memory", "temporary file"])
def test_a_finished_record_does_not_change_with_its_files(tmp_path, limit):
    record = Record(limit, tmp_path)
    record.extend(x=ROWS[:2])
    record.extend(x=ROWS[2:])
    found = record.finish(3)["x"]
    (file,) = tmp_path.glob("column-*.bin")
    file.write_bytes(bytes(file.stat().st_size))
    np.testing.assert_array_equal(found, ROWS[:3].swapaxes(0, 1))
