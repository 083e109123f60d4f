"""CSV files as tables: what is read, how it is split and standardised, and every fault that is refused."""

from __future__ import annotations

import numpy as np
import pytest

import quenchphys as qp
from quenchphys.targets.tables import Table, read_table, split_table


def write(folder, text, name="data.csv"):
    path = folder / name
    path.write_text(text)
    return path


GOOD = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(30))


def test_columns_and_classes(tmp_path):
    table = read_table(write(tmp_path, "x,kind,y\n1,10,2.5\n3,9,-1e2\n0,10,7\n"), label="kind")
    assert table.columns == ("x", "y")
    assert table.inputs.tolist() == [[1, 2.5], [3, -100], [0, 7]]
    assert table.classes == ("9", "10"), "numbers by size"
    assert table.labels.tolist() == [1, 0, 1]


def test_labels_are_merged_and_rows_dropped(tmp_path):
    text = "a,label\n1,0\n?,1\n2,3\n,2\n5,2\nNA,0\n"
    table = read_table(write(tmp_path, text), classes={0: "none", 1: "some", 2: "some", 3: "some"}, missing="drop")
    assert table.classes == ("none", "some")
    assert table.labels.tolist() == [0, 1, 1]
    assert table.inputs.ravel().tolist() == [1, 2, 5]


def test_a_stratified_split_has_every_class_in_both_parts():
    labels = np.repeat([0, 1, 2], [100, 34, 2])
    table = Table("t", ("a",), np.arange(136.0)[:, None], ("0", "1", "2"), labels)
    data = split_table(table, 0.1, seed=3)
    assert np.bincount(data.test_labels).tolist() == [10, 3, 1]
    assert np.bincount(data.labels).tolist() == [90, 31, 1]
    back = np.sort(np.concatenate([data.inputs, data.test_inputs]).ravel())
    assert np.allclose(np.diff(back), np.diff(back)[0]), "every row is in one part"
    other = split_table(table, 0.1, seed=4)
    assert not np.array_equal(other.test_inputs, data.test_inputs)
    assert np.array_equal(split_table(table, 0.1, seed=3).test_inputs, data.test_inputs)


def test_inputs_are_standardised_with_the_training_rows():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.normal(50, 3, 200), np.full(200, 0.1), rng.exponential(size=200)])
    table = Table("t", ("a", "b", "c"), inputs, ("0", "1"), np.arange(200) % 2)
    data = split_table(table, 0.25, seed=0)
    assert np.allclose(data.inputs.mean(axis=0), 0, atol=1e-6)
    assert np.allclose(data.inputs.std(axis=0), [1, 0, 1], atol=1e-6), "a constant column is only shifted"
    assert np.all(np.isfinite(data.test_inputs))
    assert abs(data.test_inputs[:, 0].mean()) > 1e-3, "the test rows have no part in it"


FAULTS = {
    "missing value": ("a,label\n1,x\n?,y\n", {}, r"line 3 of .* has no value in column 'a'; missing='drop'"),
    "no row without gaps": ("a,label\n,x\n?,y\n", {"missing": "drop"}, "no row without missing values"),
    "words as input": ("a,label\n1,x\nred,y\n", {}, r"column 'a' of .* must hold numbers; line 3 has 'red'"),
    "infinite input": ("a,label\n1,x\ninf,y\n", {}, "must hold finite numbers; line 3 has 'inf'"),
    "one class": ("a,label\n1,x\n2,x\n", {}, "has only one class, 'x'"),
    "labels are floats": ("a,label\n1,0.5\n2,1\n", {}, r"words or whole numbers; line 2 of .* has '0.5'"),
    "labels are written as floats": ("a,label\n1,0.0\n2,1.0\n", {}, "has '0.0'"),
    "unknown label": ("a,label\n1,0\n2,7\n", {"classes": {0: 0, 1: 1}}, "the label '7', which classes does not mention"),
    "empty file": ("", {}, "is empty"),
    "blank file": ("\n\n", {}, "is empty"),
    "header alone": ("a,label\n", {}, "a header row but no other rows"),
    "duplicate header": ("a,a,label\n1,2,x\n", {}, "more than one column 'a'"),
    "column without a name": ("a,,label\n1,2,x\n", {}, "a column without a name"),
    "no label column": ("a,b\n1,2\n", {}, "has no column 'label' for the classes; its columns are 'a', 'b'"),
    "no input": ("label\nx\ny\n", {}, "no column beside 'label'"),
    "short row": ("a,b,label\n1,2,x\n1,y\n", {}, "line 3 of .* has 2 values; the header row has 3 names"),
    "open quote": ('a,label\n"1,x\n', {}, "cannot be read as a CSV file"),
    "class once": ("a,label\n1,x\n2,y\n3,y\n", {}, "training data .* no member of class 'x', of which there is 1"),
    "unknown activation": (GOOD, {"activation": "tan"}, "activation must be one of tanh, relu, .*; 'tan' was given"),
    "no units": (GOOD, {"hidden": (16, 0)}, r"positive whole numbers.*\(16, 0\) was given"),
    "a negative layer": (GOOD, {"hidden": (-1,)}, "positive whole numbers"),
    "half a unit": (GOOD, {"hidden": (2.5,)}, "positive whole numbers"),
    "one number": (GOOD, {"hidden": 16}, "must be a sequence"),
    "all rows for testing": (GOOD, {"test": 1.0}, "between 0 and 1; 1.0 was given"),
    "negative seed": (GOOD, {"split": -1}, "whole number from 0 on; -1 was given"),
    "unknown way": (GOOD, {"missing": "guess"}, "'refuse' or 'drop'; 'guess' was given"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused_in_one_sentence(tmp_path, fault):
    text, options, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message) as refused:
        qp.targets.network(write(tmp_path, text), **options)
    assert "\n" not in str(refused.value)


def test_a_test_split_without_a_class_is_refused(tmp_path):
    rows = "".join(f"{i},{'rare' if i < 2 else 'common'}\n" for i in range(40))
    path = write(tmp_path, "a,label\n" + rows)
    assert qp.targets.network(path, split=1).test_labels.tolist().count(1) == 1
    with pytest.raises(ValueError, match=r"test data .*split=1.* no member of class 'rare', of which there are 2 in all"):
        qp.targets.network(path, split=1, stratified=False)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing.csv"):
        qp.targets.network(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        qp.targets.network(tmp_path)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00,\x81")
    with pytest.raises(ValueError, match="cannot be read as a CSV file"):
        qp.targets.network(tmp_path / "binary.csv")
