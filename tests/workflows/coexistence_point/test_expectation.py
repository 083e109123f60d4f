"""Where a coexistence point is looked for: by mean field, in wide brackets, and under the names of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import workflows
from tests.support.mean_field_model import CUT, OneSite, coexistence_mu2
from workflows.coexistence_point.expectation import own_place, phases_of, start_in
from workflows.model_family import family_of
from workflows.results import summary
from workflows.scaling.finite_size import order_of


@dataclass(frozen=True, eq=False)
class UpAndDown(OneSite):
    """One site whose phases have other names, and are expected near their transition only."""

    @property
    def phases(self):
        near = 0.7 < float(self.mu2) < 1.3
        return {"down": ("q", 0.0, CUT), "up": ("q", CUT, math.inf)} if near else {}


def up_and_down(L, mu2, lam=-1.0, eta=0.5):
    return UpAndDown(*(np.float32(value) for value in (L * L, mu2, lam, eta)))


@pytest.mark.parametrize(("L", "point"), [(8, 2.2948), (16, 2.28656), (40, 2.28396)])
def test_mean_field_puts_phi6_into_a_bracket_that_contains_its_point(L, point):
    place = own_place(family_of("phi6", "mu2", {}, L=L))
    assert place.bracket[0] < point < place.bracket[1]
    assert abs(place.start - point) < 0.1
    assert phases_of(family_of("phi6", "mu2", {}, L=L), place.start).by == "q"


def test_a_wide_bracket_begins_where_two_phases_are_expected():
    family = family_of("phi6", "mu2", {}, L=8)
    with pytest.raises(ValueError, match="not expected to have two phases at mu2 = 3"):
        phases_of(family, 3.0)
    assert start_in(family, (1.0, 5.0)) == own_place(family).start
    assert start_in(family, (2.25, 2.33)) == 0.5 * (2.25 + 2.33)  # the middle, wherever that will do
    assert order_of(family, (1.0, 5.0)) == "first"
    assert order_of(family_of("phi4", "mu2", {"lam": 0.25}, L=8), (-5.0, 5.0)) == "second"


def test_a_wide_bracket_is_searched_and_phases_keep_their_names():
    point = coexistence_mu2(4)
    found = workflows.coexistence(4, (-9.0, 3.1), model=up_and_down, sweeps=176, progress=False)
    assert abs(float(found.mu2) - point) < 5 * float(found.mu2_err)
    assert list(found.phase.values) == ["down", "up"]
    text = summary(found)
    assert "down" in text and "up share at" in text and "ordered" not in text.replace("ordered_share", "")
