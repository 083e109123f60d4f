"""A problem whose parts contradict each other is refused in one sentence; every problem we ship passes."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices
import observables
import quenchphys as qp
from lattices.field import ScalarField
from quenchphys.consistency import check_couplings
from quenchphys.problem import view
from quenchphys.samplers import multicanonical_chains, quenched, tempered

D = 6


class Sound:
    """A quartic energy over independent Gaussians, with everything a problem can have."""

    name = "sound"
    g = 0.3
    precision = jnp.full(D, 4.0)
    basis = qp.SiteBasis((D,), precision)
    symmetries = (lambda x: -x, lambda x: x[::-1])

    def sample_prior(self, key, n):
        return 0.5 * jax.random.normal(key, (n, D))

    def log_prior(self, x):
        return -0.5 * jnp.sum(self.precision * x * x)

    def log_prior_and_grad(self, x):
        return -0.5 * jnp.sum(4.0 * x * x, axis=1), -4.0 * x

    def energy(self, x):
        return self.g * jnp.sum(x**4) + jnp.sum(x * x)

    def energy_and_grad(self, x):
        return self.g * jnp.sum(x**4, axis=1) + jnp.sum(x * x, axis=1), 4 * self.g * x**3 + 2 * x

    def observe(self, x):
        return {"x4": jnp.sum(x**4), "r2": jnp.sum(x * x)}

    @property
    def couplings(self):
        return {"g": (self.g, "x4", 1.0)}

    @property
    def phases(self):
        return {"near": ("r2", 0.0, 1.0), "far": ("r2", 1.0, np.inf)}


class Built:
    """A problem whose constructor works something out from its arguments."""

    def __init__(self, tilt, depth):
        self.tilt, self.depth = tilt, depth
        self._force = -tilt

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 2))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return self.depth * jnp.sum(x * x) + self._force * x[0]

    def observe(self, x):
        return {"x": x[0]}

    @property
    def couplings(self):
        return {"tilt": (self.tilt, "x", -1.0)}


class Renamed(Built):
    """Its constructor's argument is not an attribute, so that it cannot be built again."""

    tilt = 0.3  # another thing of the same name

    def __init__(self, strength):
        self._force, self.depth = -strength, 1.0


class Open(Built):
    """Its constructor takes anything, so that it cannot be built again from its attributes."""

    def __init__(self, tilt=0.3, **parts):
        self.tilt, self.depth = tilt, 1.0
        vars(self).update(parts)

    def energy(self, x):
        return self.depth * jnp.sum(x * x) - self.tilt * x[0]


def faulty(of=Sound, arguments=(), **parts):
    return type("Faulty", (of,), parts)(*arguments)


def with_couplings(terms):
    return property(lambda self: terms)


FAULTS = {
    "coupling with the wrong sign": (
        {"couplings": with_couplings({"g": (0.3, "x4", -1.0)})},
        r"coupling 'g' .* \(factor -1",
    ),
    "coupling with the wrong factor": (
        {"couplings": with_couplings({"g": (0.3, "x4", 0.5)})},
        r"coupling 'g' .* \(factor 0.5",
    ),
    "coupling with the wrong observable": (
        {"couplings": with_couplings({"g": (0.3, "r2", 1.0)})},
        r"coupling 'g' .* times r2",
    ),
    "coupling with the wrong sign in a problem that is built": (
        {"of": Built, "arguments": (0.5, 1.0), "couplings": with_couplings({"tilt": (0.5, "x", 1.0)})},
        r"coupling 'tilt' .* \(factor 1 times x\)",
    ),
    "coupling with the wrong sign in a problem that cannot be built again": (
        {"of": Open, "couplings": with_couplings({"tilt": (0.3, "x", 1.0)})},
        r"coupling 'tilt' .* \(factor 1 times x\)",
    ),
    "coupling with another value": (
        {"couplings": with_couplings({"g": (0.5, "x4", 1.0)})},
        r"'g' says that its value is 0.5",
    ),
    "coupling of an observable that is not recorded": (
        {"couplings": with_couplings({"g": (0.3, "x6", 1.0)})},
        r"coupling 'g' .* 'x6'.* recorded are",
    ),
    "phase of an observable that is not recorded": (
        {"phases": with_couplings({"near": ("radius", 0.0, 1.0)})},
        r"phase 'near' .* 'radius'",
    ),
    "draws twice too wide": (
        {"sample_prior": lambda self, key, n: jax.random.normal(key, (n, D))},
        r"sample_prior does not draw from log_prior: .* -2\d.* it is -6",
    ),
    "one coordinate of the draws too wide": (
        {"sample_prior": lambda self, key, n: 0.5 * jax.random.normal(key, (n, D)) * jnp.array([1, 1, 1, 1, 1, 2.0])},
        r"sample_prior does not draw from log_prior",
    ),
    "a symmetry that changes U": ({"symmetries": (lambda x: 1.1 * x,)}, r"symmetry 0 changes the energy"),
    "a symmetry that changes the prior": (
        {
            "symmetries": (lambda x: x.at[0].set(x[1]),),
            "energy": lambda self, x: jnp.sum(x[2:] ** 2),
            "energy_and_grad": None,
        },
        r"symmetry 0 changes log_prior",
    ),
    "a gradient with the wrong sign": (
        {"energy_and_grad": lambda self, x: (Sound.energy_and_grad(self, x)[0], -Sound.energy_and_grad(self, x)[1])},
        r"gradient of energy_and_grad .* derivative of energy",
    ),
    "an energy that is not that of its gradient": (
        {"energy_and_grad": lambda self, x: (1 + Sound.energy_and_grad(self, x)[0], Sound.energy_and_grad(self, x)[1])},
        r"energy_and_grad gives .* on which energy gives",
    ),
    "a score of another prior": (
        {"log_prior_and_grad": lambda self, x: (-0.5 * jnp.sum(4.0 * x * x, axis=1), -2.0 * x)},
        r"gradient of log_prior_and_grad",
    ),
    "a basis of another prior": (
        {"basis": qp.SiteBasis((D,), jnp.full(D, 2.0))},
        r"precision of the basis is not that of the prior",
    ),
    "a phase without an inside": (
        {"phases": with_couplings({"near": ("r2", 1.0, 0.0)})},
        r"bounds of the phase 'near' must be two increasing numbers",
    ),
    "draws moved away from the prior": (
        {"sample_prior": lambda self, key, n: 0.2 + 0.5 * jax.random.normal(key, (n, D))},
        r"sample_prior does not draw from log_prior",
    ),
    "draws outside the prior": (
        {
            "log_prior": lambda self, x: jnp.where(jnp.all(jnp.abs(x) < 0.5), 0.0, -jnp.inf),
            "log_prior_and_grad": None,
            "basis": None,
        },
        r"log_prior is infinite or NaN on 2\d\d of 256 draws",
    ),
    "a box without walls": (
        {
            "sample_prior": lambda self, key, n: jax.random.uniform(key, (n, D)),
            "log_prior": lambda self, x: 0.0 * jnp.sum(x),
            "log_prior_and_grad": None,
            "basis": None,
        },
        r"sample_prior does not draw from log_prior",
    ),
    "draws that ignore their key": (
        {"sample_prior": lambda self, key, n: 0.5 * jax.random.normal(jax.random.key(1), (n, D))},
        r"the same draws for two keys",
    ),
    "draws that are all equal": (
        {"sample_prior": lambda self, key, n: jnp.tile(0.5 * jax.random.normal(key, (1, D)), (n, 1))},
        r"256 equal configurations",
    ),
    "an energy whose derivative is cut off": (
        {"energy": lambda self, x: jax.lax.stop_gradient(jnp.sum(x * x)) + 0.0 * jnp.sum(x), "energy_and_grad": None},
        r"derivative of energy .* by differences",
    ),
    "a symmetry that shrinks": (
        {
            "symmetries": (lambda x: x.at[0].multiply(0.5),),
            "energy": lambda self, x: jnp.sum(x[1:] ** 2),
            "energy_and_grad": None,
            "log_prior": lambda self, x: jnp.where(jnp.all(jnp.abs(x) <= 1), 0.0, -jnp.inf),
            "log_prior_and_grad": None,
            "basis": None,
            "sample_prior": lambda self, key, n: jax.random.uniform(key, (n, D), minval=-1.0),
        },
        r"symmetry 0 turns a displacement of length .* keep lengths",
    ),
    "a basis that does not come back": (
        {
            "basis": type(
                "Odd",
                (),
                {"precision": jnp.full(D, 4.0), "to_modes": lambda s, x: x, "from_modes": lambda s, y: y[..., ::-1]},
            )()
        },
        r"must give x back",
    ),
    "a gradient of another shape": (
        {"energy_and_grad": lambda self, x: (jnp.sum(x * x, axis=1), jnp.sum(x, axis=1))},
        r"energy_and_grad\(x\) must return values of shape \(7,\) and gradients of shape \(7, 6\)",
    ),
    "a basis that is not orthonormal": (
        {
            "basis": type(
                "Wide", (), {"precision": jnp.ones(D), "to_modes": lambda s, x: 2 * x, "from_modes": lambda s, y: y / 2}
            )()
        },
        r"not orthonormal",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_problem_is_refused_in_one_sentence(name):
    parts, words = FAULTS[name]
    with pytest.raises(ValueError, match=words) as refused:
        qp.check(faulty(**parts))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("scale", [0.99, 1.01])
def test_a_prior_off_by_a_percent_is_beyond_the_check(scale):
    """The check finds wrong formulas, not small numerical differences: it must not refuse what it cannot know."""
    qp.check(faulty(sample_prior=lambda self, key, n: scale * 0.5 * jax.random.normal(key, (n, D))))


class Model:
    """A problem of functions: draws of a key and a number, log density and energy of one configuration."""

    def __init__(self, draw, log_prior, energy=lambda x: jnp.sum(x * x), **parts):
        self.sample_prior, self.log_prior, self.energy = draw, log_prior, energy
        vars(self).update(parts)


def gaussian(key, n):
    return jax.random.normal(key, (n, 4))


def log_gaussian(x):
    return -0.5 * jnp.sum(x * x)


def uniform_on(low, high):
    inside = lambda x: jnp.all((x >= low) & (x <= high))  # noqa: E731
    draw = lambda key, n: jax.random.uniform(key, (n, 4), minval=low, maxval=high)  # noqa: E731
    return draw, lambda x: jnp.where(inside(x), 0.0, -jnp.inf)


def on_a_ring(key, n):
    """Uniform between the radii 1 and 2, a support with a hole."""
    radius, angle = jax.random.split(key)
    r = jnp.sqrt(1 + 3 * jax.random.uniform(radius, (n,)))
    phi = 2 * jnp.pi * jax.random.uniform(angle, (n,))
    return jnp.stack([r * jnp.cos(phi), r * jnp.sin(phi)], axis=1)


def log_ring(x):
    square = jnp.sum(x * x)
    return jnp.where((square > 1) & (square < 4), 0.0, -jnp.inf)


def two_steps(key, n):
    """Density 3 : 1 on |x| < 1 and 1 < |x| < 2: no derivative anywhere, and jumps."""
    which, place = jax.random.split(key)
    inner = jax.random.uniform(place, (n, 1), minval=-1.0)
    outer = inner + jnp.sign(inner)
    return jnp.where(jax.random.uniform(which, (n, 1)) < 0.75, inner, outer)


def log_two_steps(x):
    size = jnp.abs(x[0])
    return jnp.where(size < 1, jnp.log(3.0), jnp.where(size < 2, 0.0, -20.0))


def lennard_jones(x):
    a = (4.0 / jnp.sum(x[:3] ** 2)) ** 3
    return 20.0 * (a * a - a)


def shift(x):
    return jnp.mod(x + jnp.pi, 2 * jnp.pi)


ANGLES = (
    lambda key, n: jax.random.uniform(key, (n, 4), maxval=2 * jnp.pi),
    lambda x: jnp.zeros(()) * jnp.sum(x) + jnp.where(jnp.all((x >= 0) & (x <= 2 * jnp.pi)), 0.0, -jnp.inf),
)

SOUND = {
    "everything": Sound(),
    "a box": Model(*uniform_on(-1.0, 1.0)),
    "a box far from the origin": Model(*uniform_on(9.0, 10.0)),
    "a ring": Model(on_a_ring, log_ring),
    "a density in steps": Model(two_steps, log_two_steps),
    "exponential": Model(
        lambda key, n: jax.random.exponential(key, (n, 4)), lambda x: jnp.where(jnp.all(x >= 0), -jnp.sum(x), -jnp.inf)
    ),
    "cauchy": Model(lambda key, n: jax.random.cauchy(key, (n, 4)), lambda x: -jnp.sum(jnp.log1p(x * x)), jnp.max),
    "laplace": Model(lambda key, n: jax.random.laplace(key, (n, 4)), lambda x: -jnp.sum(jnp.abs(x))),
    "log-normal": Model(
        lambda key, n: jnp.exp(2 * jax.random.normal(key, (n, 4))),
        lambda x: jnp.where(
            jnp.all(x > 0), -jnp.sum(jnp.log(jnp.maximum(x, 1e-30)) ** 2 / 8 + jnp.log(jnp.maximum(x, 1e-30))), -jnp.inf
        ),
    ),
    "one number": Model(
        lambda key, n: jax.random.normal(key, (n,)), lambda x: -0.5 * x * x, lambda x: x**4, symmetries=(lambda x: -x,)
    ),
    "NaN on part of the prior": Model(
        gaussian,
        log_gaussian,
        lambda x: jnp.where(x[0] > 0.5, jnp.nan, jnp.sum(x * x)),
        symmetries=(lambda x: x[:, ...],),
    ),
    "infinite on part of the prior": Model(
        gaussian,
        log_gaussian,
        lambda x: jnp.where(jnp.abs(x[0]) < 0.2, jnp.inf, jnp.sum(x * x)),
        symmetries=(lambda x: -x,),
    ),
    "a hard core": Model(gaussian, log_gaussian, lennard_jones, symmetries=(lambda x: -x,)),
    "energies of 1e25": Model(gaussian, log_gaussian, lambda x: 1e25 * jnp.sum(x**4), symmetries=(lambda x: -x,)),
    "a large constant": Model(gaussian, log_gaussian, lambda x: 1e6 + jnp.sum(x * x), symmetries=(lambda x: -x,)),
    "an oscillating energy": Model(gaussian, log_gaussian, lambda x: jnp.sum(10 * (1 - jnp.cos(60.0 * x)) + x * x)),
    "an energy in steps": Model(gaussian, log_gaussian, lambda x: jnp.sum(jnp.floor(3 * x * x))),
    "angles": Model(*ANGLES, lambda x: jnp.sum(jnp.cos(2 * x)), symmetries=(shift,)),
    "an argument kept under another name": Renamed(0.3),
    "an open constructor": Open(0.3),
    "phi6": lattices.phi6(L=8, mu2=2.29),
    "phi6 in three dimensions": lattices.phi6(L=4, dim=3, mu2=2.2),
    "phi4": lattices.phi4(L=16, mu2=-0.7, lam=0.125),
    "free field": lattices.scalar_field((6, 10), mu2=0.5),
    "graph": lattices.scalar_field_on_graph([(0, 1), (1, 2), (2, 3), (3, 0)], mu2=-1.0, couplings={4: 0.5}),
    "gaussian": qp.targets.gaussian(100),
    "spike and slab": qp.targets.spike_slab(10),
    "bimodal": qp.targets.bimodal(10),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_problem_passes_and_quickly(name):
    qp.check(SOUND[name])
    begun = time.process_time()
    qp.check(SOUND[name])
    assert time.process_time() - begun < 1.0


def test_a_problem_of_one_number_is_sampled():
    """A configuration may be a single number: Z = E[exp(-x^2)] = 3^(-1/2) for a standard normal x."""
    problem = Model(lambda key, n: jax.random.normal(key, (n,)), lambda x: -0.5 * x * x, lambda x: x * x)
    found = observables.partition_function(qp.quench(problem, particles=400, seed=1))
    assert abs(float(found.log_z) + 0.5 * np.log(3.0)) < 4 * float(found.log_z_err)


@pytest.mark.parametrize("sampler", ["quench", "auto", "temper", "multicanonical"])
def test_every_sampler_checks_its_problem_once(sampler, monkeypatch):
    calls = []
    for module in (quenched, tempered, multicanonical_chains):
        monkeypatch.setattr(module, "check", lambda problem: calls.append(problem))
    problem, few = qp.targets.gaussian(4), {"particles": 32, "replicas": 1, "progress": False}
    if sampler == "quench":
        qp.quench(problem, **few)
    elif sampler == "auto":
        qp.quench(problem, softness="auto", **few)
    elif sampler == "temper":
        qp.temper(problem, **few)
    else:
        qp.multicanonical(problem, np.zeros((1, 2, 4)), np.arange(5.0), np.zeros(5), sweeps=1, warm_up=0)
    assert calls == [problem]


def test_a_faulty_problem_is_not_sampled():
    with pytest.raises(ValueError, match="symmetry 0 changes the energy"):
        qp.quench(faulty(symmetries=(lambda x: 1.1 * x,)), particles=2, replicas=1)


FIELDS = {
    "phi6": lattices.phi6(L=4, mu2=2.2),
    "phi4": lattices.phi4(L=4, mu2=-0.7, lam=0.125),
    "another potential": lattices.scalar_field((4, 4), mu2=0.5, couplings={4: -0.5, 8: 0.1}),
    "graph": lattices.scalar_field_on_graph([(0, 1), (1, 2), (2, 3), (3, 0)], mu2=-1.0, couplings={4: 0.5}),
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_coupling_of_a_shipped_field_is_compared(name, monkeypatch):
    model, declared = FIELDS[name], ScalarField.couplings
    qp.check(model)
    for coupling, (value, observable, factor) in model.couplings.items():
        wrong = model.couplings | {coupling: (value, observable, 2 * factor)}
        monkeypatch.setattr(ScalarField, "couplings", property(lambda self, wrong=wrong: wrong))
        with pytest.raises(ValueError, match=rf"'{coupling}' says that U changes by .* \(factor {2 * factor:g} times"):
            qp.check(model)
        monkeypatch.setattr(ScalarField, "couplings", declared)


def test_couplings_can_be_checked_with_a_builder():
    """A workflow builds models at other couplings; those of a field that are not attributes are checked in this way."""
    model = view(lattices.phi6(L=4, mu2=2.2))
    check_couplings(model, lambda name, value: lattices.phi6(**{"L": 4, "mu2": 2.2, name: value}))
    with pytest.raises(ValueError, match=r"'lam' says that U changes by .* when lam goes from -1 to"):
        check_couplings(
            model, lambda name, value: lattices.phi6(L=4, mu2=2.2, lam=-2 - value) if name == "lam" else None
        )
