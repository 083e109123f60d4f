"""The Laplace approximation: `laplace` takes the posterior for a Gaussian at its mode.

    log Z = -U(x*) + log pi(x*) + D/2 log 2 pi - 1/2 log det A,     A = curvature of U + curvature of -log pi at the mode x*.

It is exact for a Gaussian, costs next to nothing, and knows only the mode it is at.  Its draws are weighed against the
posterior (importance sampling), which tells whether to believe it.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from quenchphys.consistency import check
from quenchphys.console.interruption import Interrupted
from quenchphys.console.memory import check_fits
from quenchphys.console.progress import Meter, meter, shown
from quenchphys.extras import optional
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.random_numbers import key_of, split
from quenchphys.plain_values import finite
from quenchphys.problem import ProblemView, view
from quenchphys.samplers.posterior_mode import (
    CURVATURES,
    GaussianPrior,
    begin,
    descend,
    gaussian_prior,
    slope_and_curvature,
)
from quenchphys.settings import check_seed, keep_plain
from quenchphys.smc.loop import stoppable
from quenchphys.storage.attributes import problem_attributes, software_attributes

BLOCK = 1000  # steps of Adam in one device call
LARGEST_DECREMENT = 0.1  # nats that a step to the mode of the Gaussian may still gain without a doubt
FEWEST = 10.0  # effective draws from which importance sampling says anything
TRUSTED_SHARE = 0.05  # of the draws that must count
SAME = 1e-3  # relative difference between U and loss(predict) up to which they are the same
LONG_NAMES = {
    "log_z": "log of the evidence in the Laplace approximation",
    "log_z_err": "distance from the importance-sampled value and its error; NaN where too few draws count",
    "log_z_importance": "log of the evidence by importance sampling with the Gaussian",
    "log_z_importance_err": "standard error of that",
    "ess": "effective draws of the importance sampling",
    "mode": "the configuration of highest posterior density",
    "mode_energy": "energy U of the mode",
    "decrement": "nats that a Newton step from the mode would gain",
    "start_energy": "U - log prior that each start of the optimiser ended at",
    "field": "draw from the Gaussian",
    "energy": "energy U of the draw",
    "log_weight": "log of posterior density over Gaussian density, up to a constant",
}


@dataclass(frozen=True)
class LaplaceSettings:
    """The settings of `laplace`; a wrong one is refused when the object is made."""

    steps: int = 20_000
    learning_rate: float = 1e-3
    starts: int = 1
    draws: int = 1000
    curvature: str = "gauss-newton"
    tolerance: float = LARGEST_DECREMENT
    seed: int = 0

    def __post_init__(self) -> None:
        keep_plain(self, steps=1, starts=1, draws=2)
        object.__setattr__(self, "learning_rate", finite("learning_rate", self.learning_rate))
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate must be positive; {self.learning_rate} was given")
        object.__setattr__(self, "tolerance", finite("tolerance", self.tolerance))
        if self.tolerance <= 0:
            raise ValueError(f"tolerance must be positive; {self.tolerance} was given")
        if self.curvature not in CURVATURES:
            raise ValueError(f"curvature must be one of {', '.join(map(repr, CURVATURES))}; {self.curvature!r} was given")
        object.__setattr__(self, "seed", check_seed(self.seed))


def laplace(
    problem: Any,
    *,
    steps: int = 20_000,
    learning_rate: float = 1e-3,
    starts: int = 1,
    draws: int = 1000,
    curvature: str = "gauss-newton",
    tolerance: float = LARGEST_DECREMENT,
    seed: int = 0,
    progress: bool | Meter | None = None,
) -> xr.Dataset:
    """Approximate the posterior pi(x) exp(-U(x)) by a Gaussian at its mode; needs the extra `rivals` (optax).

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy` whose prior is a Gaussian: see `quenchphys.problem.Problem`.
    steps, learning_rate
        Of Adam, in units of the prior's spread; the rate falls to zero over the second half.
    starts
        Prior draws from which Adam starts; the best of its ends is the mode.
    draws
        Draws from the Gaussian.
    curvature
        "gauss-newton", for problems with `predict` and `loss`, or "hessian" for any smooth energy.
    tolerance
        Nats that a Newton step from the end of Adam may still gain; more is refused.  A mode at kinks of the energy, as
        those of ReLU networks are, keeps a few, and log Z is uncertain by as much.
    seed, progress
        As in `quench`.

    Returns
    -------
    Dataset
        log_z and log_z_err; mode, mode_energy, decrement and start_energy; over chain (one) and draw, field, energy, every
        observable and log_weight; log_z_importance and ess, by importance sampling.  The attributes `trusted` and `why` say
        whether to believe it.

    Examples
    --------
    >>> found = qp.laplace(qp.targets.network("heart.csv", activation="tanh"))
    >>> found.log_z.item(), found.ess.item()
    """
    optional("optax", "qp.laplace", "rivals")
    settings = LaplaceSettings(steps, learning_rate, starts, draws, curvature, tolerance, seed)
    check(problem)
    model = view(problem)
    dimension = math.prod(model.shape)
    numbers = 6 * dimension**2 + 4 * dimension * (settings.draws + settings.starts)
    check_fits("its curvatures", 8.0 * numbers, f"a dimension of {dimension} is too large for a full curvature")
    begun = time.monotonic()
    with own_settings(), stoppable(None) as request:
        check_predictions(model, settings)
        mode_key, draw_key = split(key_of(settings.seed))
        x = np.asarray(model.sample_prior(mode_key, max(2, settings.starts)), np.float64).reshape(-1, dimension)
        prior = gaussian_prior(model, x[:2])
        display = meter("laplace", progress)
        with shown(display):
            ends, phi = optimise(model, settings, prior, x[: settings.starts], display, request)
        found = expand(model, settings, prior, ends, phi)
        z = np.asarray(jax.random.normal(draw_key, (settings.draws, dimension)), np.float64)
        drawn = found["mode"] + solve_triangular(found["root"], z.T, lower=True, trans="T").T
        recorded = observed(model, drawn)
    return labelled(model, settings, prior, found, drawn, z, recorded, time.monotonic() - begun)


def check_predictions(model: ProblemView, settings: LaplaceSettings) -> None:
    """Refuse a problem without predictions, or whose energy is not the loss of its predictions."""
    if settings.curvature != "gauss-newton":
        return
    if model.predictions is None:
        raise ValueError(
            f"the Gauss-Newton curvature needs predict(x) and loss(outputs) with U(x) = loss(predict(x)), which this "
            f"{model.name} does not have; choose curvature='hessian', or use qp.quench"
        )
    predict, loss = model.predictions
    x = model.sample_prior(jax.random.key(0), 4)
    energy, same = (np.asarray(jax.vmap(f)(x), float) for f in (model.energy, lambda one: loss(predict(one))))
    if not np.allclose(energy, same, rtol=SAME, atol=SAME * max(1.0, float(np.ptp(energy)))):
        raise ValueError(
            f"loss(predict(x)) of this {model.name} must be its energy, but at a draw from the prior it is {same[0]:.6g} "
            f"and the energy {energy[0]:.6g}"
        )


def optimise(
    model: ProblemView, settings: LaplaceSettings, prior: GaussianPrior, start: np.ndarray, display: Meter, request: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Where Adam ended from every start (start, D), and phi = U - log pi there."""
    spread = np.sqrt(np.diagonal(np.linalg.inv(prior.precision)))
    scaled = jnp.asarray((start - prior.mean) / spread, jnp.float32)
    at = begin(scaled, settings.steps, settings.learning_rate)
    mean, scale = jnp.asarray(prior.mean, jnp.float32), jnp.asarray(spread, jnp.float32)
    done = 0
    while done < settings.steps:
        size = min(BLOCK, settings.steps - done)
        at, phi = descend(model.as_argument(), mean, scale, at, size, settings.steps, settings.learning_rate)
        done += size
        display.update(done, float(np.nanmin(phi)), 1.0, 0.0, settings.steps - done)
        if request and done < settings.steps:
            raise Interrupted(f"Interrupted after {done} steps; nothing is kept of them.")
    return prior.mean + spread * np.asarray(at.position, np.float64), np.asarray(phi, np.float64)


def expand(
    model: ProblemView, settings: LaplaceSettings, prior: GaussianPrior, ends: np.ndarray, phi: np.ndarray
) -> dict[str, Any]:
    """The Gaussian at the best of the ends, refused where there is none."""
    if not np.isfinite(phi).any():
        raise ValueError("Adam ended where the energy is not a number, from every start; lower learning_rate")
    mode = ends[int(np.nanargmin(np.where(np.isfinite(phi), phi, np.inf)))]
    energy, slope, curved = jax.device_get(
        slope_and_curvature(model.as_argument(), jnp.asarray(mode, jnp.float32), settings.curvature)
    )
    slope = np.asarray(slope, np.float64) + prior.precision @ (mode - prior.mean)
    curved = np.asarray(curved, np.float64)
    matrix = prior.precision + (curved + curved.T) / 2
    if not (np.isfinite(matrix).all() and np.isfinite(slope).all()):
        raise ValueError(
            "the energy has no finite gradient and curvature at the mode that Adam found, at a boundary perhaps, where "
            "there is no Gaussian; use qp.quench"
        )
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= 1e-6 * float(np.abs(np.diagonal(matrix)).max()):
        raise ValueError(
            f"the curvature at the mode that Adam found is singular or negative in some direction (smallest eigenvalue "
            f"{smallest:.3g}), so there is no Gaussian; choose curvature='gauss-newton', or use qp.quench"
        )
    root = np.linalg.cholesky(matrix)
    decrement = 0.5 * float(np.sum(solve_triangular(root, slope, lower=True) ** 2))
    if decrement > settings.tolerance:
        raise ValueError(
            f"Adam has not reached a minimum: a Newton step would gain {decrement:.3g} nats (up to {settings.tolerance:g} "
            f"are accepted); raise steps ({settings.steps}) or learning_rate ({settings.learning_rate:g}), or, if the mode "
            "lies at kinks of the energy, as of a ReLU network, tolerance, or, if at a boundary, use qp.quench"
        )
    log_determinant = 2 * float(np.log(np.diagonal(root)).sum())
    log_prior = float(prior.log_density(mode[None])[0])
    log_z = log_prior - float(energy) + 0.5 * len(mode) * math.log(2 * math.pi) - 0.5 * log_determinant
    return {"mode": mode, "mode_energy": float(energy), "root": root, "log_determinant": log_determinant,
            "decrement": decrement, "log_z": log_z, "start_energy": phi}  # fmt: skip


def observed(model: ProblemView, drawn: np.ndarray) -> dict[str, np.ndarray]:
    """Energy and observables of the draws, (draw,)."""
    x = jnp.asarray(drawn.reshape(-1, *model.shape), jnp.float32)
    found = jax.lax.map(lambda one: {"energy": model.energy(one), **model.observe(one)}, x, batch_size=min(64, len(x)))
    return {name: np.asarray(value) for name, value in found.items()}


def labelled(
    model: ProblemView,
    settings: LaplaceSettings,
    prior: GaussianPrior,
    found: dict[str, Any],
    drawn: np.ndarray,
    z: np.ndarray,
    recorded: dict[str, np.ndarray],
    seconds: float,
) -> xr.Dataset:
    """The dataset, with the draws weighed against the posterior."""
    log_gaussian = 0.5 * found["log_determinant"] - 0.5 * z.shape[1] * math.log(2 * math.pi) - 0.5 * (z**2).sum(axis=1)
    log_w = prior.log_density(drawn) - recorded["energy"].astype(float) - log_gaussian
    log_w = np.where(np.isnan(log_w), -np.inf, log_w)
    log_z, error, ess = importance(log_w)
    distance = math.hypot(found["log_z"] - log_z, error) if ess >= FEWEST else math.nan
    data = xr.Dataset(
        {
            "log_z": found["log_z"],
            "log_z_err": distance,
            "log_z_importance": log_z,
            "log_z_importance_err": error,
            "ess": ess,
            "mode": (model.dims, found["mode"].reshape(model.shape)),
            "mode_energy": found["mode_energy"],
            "decrement": found["decrement"],
            "start_energy": ("start", found["start_energy"]),
            "field": (("chain", "draw", *model.dims), drawn.reshape(1, -1, *model.shape).astype(np.float32)),
            "log_weight": (("chain", "draw"), log_w[None]),
            **{name: (("chain", "draw"), value[None]) for name, value in recorded.items()},
        }
    )
    for name, variable in data.variables.items():
        variable.attrs |= {"long_name": LONG_NAMES.get(str(name), str(name)), "units": "1"}
    doubts = reasons(model, settings, ess, found["decrement"])
    products = math.prod(model.shape)  # each costs about two gradients
    return data.assign_attrs(
        method="laplace",
        curvature=settings.curvature,
        trusted=int(not doubts),
        why="; ".join(doubts) or f"{ess:.0f} of {settings.draws} draws count: the posterior is close to the Gaussian",
        seed=settings.seed,
        **problem_attributes(model),
        settings=json.dumps(asdict(settings)),
        gradients=float(settings.steps * settings.starts + 2 * products),
        wall_time=seconds,
        **software_attributes(),
    )


def importance(log_w: np.ndarray) -> tuple[float, float, float]:
    """log of the mean weight, its standard error, and the effective number of draws."""
    log_z = float(logsumexp(log_w) - math.log(len(log_w)))
    if not math.isfinite(log_z):
        return -math.inf, math.nan, 0.0
    w = np.exp(log_w - log_z)
    return log_z, float(w.std(ddof=1) / math.sqrt(len(w))), float(w.sum() ** 2 / (w**2).sum())


def reasons(model: ProblemView, settings: LaplaceSettings, ess: float, decrement: float) -> list[str]:
    """Everything that speaks against the approximation, each in a clause."""
    found = []
    if decrement > LARGEST_DECREMENT:
        found.append(f"Adam ended beside a minimum, or at a kink: a Newton step would gain {decrement:.3g} nats")
    if ess < TRUSTED_SHARE * settings.draws:
        found.append(f"the posterior is not a Gaussian: only {ess:.1f} of {settings.draws} draws count")
    if len(model.phases) > 1:
        found.append(f"the problem names the phases {' and '.join(model.phases)}, and a Gaussian describes one of them")
    return found
