"""Universality classes: what is known of them, and on which lattices."""

from __future__ import annotations

import pytest

import lattices
import workflows
from workflows.scaling.universality import CLASSES, universality_of


@pytest.mark.parametrize("dim", [2, 3])
def test_classes_are_known_on_squares_and_cubes(dim):
    assert universality_of("ising", lattices.phi4(shape=(4,) * dim, mu2=-1.0, lam=0.25)) is CLASSES["ising"][dim]


@pytest.mark.parametrize("shape", [(4, 8), (4, 4, 4, 4), (8,)])
def test_other_lattices_are_refused(shape):
    with pytest.raises(ValueError, match=r"has others\.  Leave universality out"):
        universality_of("ising", lattices.phi4(shape=shape, mu2=-1.0, lam=0.25))


@pytest.mark.parametrize(
    ("model", "wrong", "says"),
    [
        ("phi4", {"universality": "potts"}, "There is no universality class 'potts'; there are 'ising'"),
        ("phi4", {"universality": "ising", "aspect": 2}, "a lattice of 8 x 16 sites has others"),
        ("phi4", {"universality": "ising", "order": "first"}, "universality is for second-order transitions"),
    ],
)
def test_wrong_requests_are_refused(model, wrong, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        workflows.finite_size_scaling([8, 12, 16], (-1.4, -1.1), model=model, lam=0.25, out=tmp_path / "fss.nc", **wrong)
    assert list(tmp_path.iterdir()) == []
