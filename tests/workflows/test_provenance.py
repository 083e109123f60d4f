"""The call that repeats a study, as it is kept in the result."""

import numpy as np
import pytest

from workflows.provenance import LONGEST, call_of


def study(model, beta=1.0, exact=None, name=""):
    """A workflow with arguments of several kinds."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"beta": 0.5}, "beta=0.5"),
        ({"beta": np.linspace(0, 1, 400)}, "beta=[400 values from 0.0 to 1.0]"),
        ({"exact": {f"log_g_{i}": i / 7 for i in range(40)}}, "exact={'log_g_0': 0.0, "),
        ({"name": "x" * 1000}, "name='xxx"),
    ],
)
def test_values_of_every_kind_and_length_are_written(given, says):
    call = call_of(study, {"model": study, "beta": 1.0, "exact": None, "name": ""} | given)
    assert says in call and len(call) < LONGEST + 100
