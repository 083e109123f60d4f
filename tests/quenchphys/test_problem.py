"""The view of a problem: the defaults of what it leaves out, and the attributes it is documented to have."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.consistency.shapes import check_shapes
from quenchphys.problem import Problem, ProblemView, view


class Bare:
    """Nothing but the three functions."""

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 2, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return jnp.sum(x**4)


def test_what_a_problem_leaves_out_has_a_default():
    model = view(Bare())
    check_shapes(model)
    assert view(model) is model
    assert (model.name, model.shape, model.dims) == ("Bare", (2, 3), ("axis_0", "axis_1"))
    assert (model.parameters, model.couplings, model.phases, model.symmetries) == ({}, {}, {}, ())
    assert model.basis is None and model.stop is None and model.softness is None and not model.moves_on_sites
    x = jax.random.normal(jax.random.key(0), (4, 2, 3))
    assert model.observe(x[0]) == {}
    energy, gradient = model.energy_and_grad(x)
    np.testing.assert_allclose(energy, jnp.sum(x**4, axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(gradient, 4 * x**3, rtol=1e-6)
    np.testing.assert_allclose(model.log_prior_and_grad(x)[1], -x, rtol=1e-6)


def test_the_documented_attributes_are_those_of_the_view():
    documented = set(re.findall(r"^    (\w+)(?:\(x\))? {3,}\S", Problem.__doc__, flags=re.MULTILINE))
    own = {
        "sample_prior",
        "log_prior",
        "energy",
        "shape",
        "moves_on_sites",
        "without_basis",
        "as_argument",
        "defines",
        "is_constant",
        "predictions",  # documented as predict and loss
    }
    read = {name for name in vars(ProblemView) if not name.startswith("_")} - own - {"on_sites", "state"}
    assert documented == read
