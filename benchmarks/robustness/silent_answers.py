"""Answers that were wrong and said nothing: each reproduced in a small problem, with what is said now.

    python -m benchmarks.robustness.silent_answers            all, about three minutes
    python -m benchmarks.robustness.silent_answers posterior  one of them

The script uses public names only, so that it also runs in older trees (copy it there): the table of the documentation has
both columns.  What takes longer is elsewhere: lattices at coexistence in `accuracy/ladder_seeds.py`, errors of coexistence
in `accuracy/calibrations.py`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import observables
import quenchphys as qp
import workflows
from benchmarks import harness

FEW: dict[str, Any] = {"particles": 100, "replicas": 4, "progress": False}


class Well:
    """U = s2 |x|^2/2 + tilt x_0 over two standard normal coordinates."""

    name = "well"

    def __init__(self, s2: float = 1.0, tilt: float = 0.0, **parts: Any) -> None:
        self.s2, self.tilt = s2, tilt
        vars(self).update(parts)

    def sample_prior(self, key: Any, n: int) -> Any:
        return jax.random.normal(key, (n, 2))

    def log_prior(self, x: Any) -> Any:
        return -0.5 * jnp.sum(x * x)

    def energy(self, x: Any) -> Any:
        return 0.5 * self.s2 * jnp.sum(x * x) + self.tilt * x[0]

    def observe(self, x: Any) -> dict[str, Any]:
        return {"x": x[0]}


class Steep(Well):
    """Another energy under the same name and arguments, as after an edit of the code."""

    def energy(self, x: Any) -> Any:
        return 4 * super().energy(x)


class TwoModes(Well):
    """A narrow mode far away, which no prior draw comes near."""

    def energy(self, x: Any) -> Any:
        return -jnp.logaddexp(-0.5 * jnp.sum(x * x), 45.0 - 0.5 * jnp.sum(((x - 7.0) / 0.01) ** 2))


class HardCore:
    """A Lennard-Jones particle in three dimensions: sigma 2, epsilon 5."""

    def sample_prior(self, key: Any, n: int) -> Any:
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x: Any) -> Any:
        return -0.5 * jnp.sum(x * x)

    def energy(self, x: Any) -> Any:
        a = (4.0 / jnp.sum(x * x)) ** 3
        return 20.0 * (a * a - a)


def log_z(problem: Any, **settings: Any) -> tuple[float, float]:
    found = observables.partition_function(qp.quench(problem, **(FEW | settings)))
    return float(found.log_z), float(found.log_z_err)


def posterior() -> str:
    ladder = qp.quench(qp.targets.gaussian(2), particles=500, replicas=4, progress=False)
    return f"<U> of draws {float(observables.posterior(ladder, draws=1000).energy.mean()):.3f}, exact 0.8"


def faulty_models() -> str:
    faults = {
        "symmetry": {"symmetries": (lambda x: 1.5 * x,)},
        "draws": {"sample_prior": lambda key, n: 2 * jax.random.normal(key, (n, 2))},
        "gradient": {"energy_and_grad": lambda x: (0.5 * jnp.sum(x * x, axis=1), -x)},
        "coupling": {"tilt": 0.3, "couplings": {"tilt": (0.3, "x", -1.0)}},
        "phases": {"phases": {"left": ("y", -1.0, 0.0), "right": ("y", 0.0, 1.0)}},
    }
    sampled = []
    for name, parts in faults.items():
        try:
            log_z(Well(**parts), particles=20, replicas=2)
            sampled.append(name)
        except (ValueError, KeyError):
            pass
    return f"{len(sampled)} of {len(faults)} faulty models sampled {sampled}"


def reused_results() -> str:
    with tempfile.TemporaryDirectory() as folder:
        for model in (Well(), Steep()):
            try:
                result = workflows.partition_function(
                    model, [1.0], particles=100, replicas=4, out=Path(folder) / "z.nc", overwrite=True, progress=False
                )
            except ValueError as error:
                return f"refused: {error}"
    exact, old = -np.log(5.0), -np.log(2.0)
    return f"log Z of the edited model {float(result.log_z[0]):.3f}, exact {exact:.3f} (before the edit {old:.3f})"


def pooled_twice() -> str:
    ladder = qp.quench(Well(), **FEW)
    once = float(observables.partition_function(ladder).log_z_err)
    twice = float(observables.partition_function([ladder, ladder]).log_z_err)
    return f"error {once:.4f} once, {twice:.4f} with the same ladder twice"


def changed_object() -> str:
    model = Well()
    log_z(model)
    model.s2 = 100.0
    value, error = log_z(model)
    return f"log Z {value:.3f} +- {error:.3f}, exact {-np.log(101.0):.3f}"


def hard_core() -> str:
    r = np.linspace(1e-3, 14.0, 400_001)
    a = (4.0 / r**2) ** 3
    density = np.sqrt(2 / np.pi) * r**2 * np.exp(-0.5 * r**2 - 20.0 * (a * a - a))
    exact = float(np.log(np.trapezoid(density, r)))
    found = np.array([log_z(HardCore(), seed=seed) for seed in range(4)])
    off = found[:, 0] - exact
    return f"log Z - exact {off.mean():+.3f} +- {off.std(ddof=1) / 2:.3f} over 4 seeds, z {np.round(off / found[:, 1], 1)}"


def seeds() -> str:
    first, other = (qp.quench(Well(), seed=seed, **FEW).prior["energy"].values for seed in (0, 2**32))
    return f"seeds 0 and 2^32 draw {'the same' if np.array_equal(first, other) else 'different'} configurations"


def undefined_observables() -> str:
    def observe(x: Any) -> dict[str, Any]:
        return {"side": jnp.where(x[1] > 1.0, jnp.nan, x[0])}

    ladder = qp.quench(Well(observe=observe), **FEW)
    share = observables.phase_weights(ladder, by="side", cut=0.0)
    return f"share of x > 0 {float(share.ordered_share):.3f}, exact 0.5, where the observable is NaN for a part"


def unseen_mode() -> str:
    ladder = qp.quench(TwoModes(), **FEW)
    value, error = (float(observables.partition_function(ladder)[name]) for name in ("log_z", "log_z_err"))
    words = "says what no check can see" if "no check can see" in ladder.report() else "says nothing of it"
    return f"log Z {value:.2f} +- {error:.2f} without the mode, outcome '{ladder.outcome.value}', report {words}"


FINDINGS: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        posterior,
        faulty_models,
        reused_results,
        pooled_twice,
        changed_object,
        hard_core,
        seeds,
        undefined_observables,
        unseen_mode,
    )
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(FINDINGS)}")
    chosen = parser.parse_args(arguments).name or list(FINDINGS)
    warnings.simplefilter("ignore")
    for name in chosen:
        try:
            words = FINDINGS[name]()
        except Exception as error:  # a refusal is what is wanted: it is shown in its own words
            words = f"{type(error).__name__}: {error}"
        print(f"{name:22} {words}", flush=True)


if __name__ == "__main__":
    main()
