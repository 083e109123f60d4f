"""A compiled program and its problem: the program must not have read a variable that has changed since."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from quenchphys.consistency.comparison import scale_of, worst
from quenchphys.consistency.measurement import FEWEST
from quenchphys.parallel.quick_compilation import quickly_compiled
from quenchphys.prior_draws import energies_and_observables
from quenchphys.problem import ProblemView


def check_program(problem: ProblemView, x: np.ndarray, recorded: Mapping[str, np.ndarray]) -> None:
    """Refuse a compiled program that no longer belongs to its problem: one that read a variable that has changed since.

    Parameters
    ----------
    problem
        The problem as it is now.
    x
        Some configurations, (draw, ...), on the host.
    recorded
        Energy and observables, (draw,), that the program found for them.
    """
    now = quickly_compiled(lambda x: energies_and_observables(problem.as_argument(), x))  # compiled anew in every call
    with jax.default_device(jax.local_devices()[0]):
        seen = jax.device_get(now(x[:FEWEST]))
    for name, values in recorded.items():
        then, is_now, scale = values[:FEWEST], seen[name], scale_of(values)[:FEWEST]
        # Where either is NaN or infinite there is nothing to compare.
        known = np.isfinite(then) & np.isfinite(is_now)
        if known.any() and (at := worst(is_now[known], then[known], scale[known])) is not None:
            raise RuntimeError(
                f"the {name} of a configuration is {is_now[known][at]:.6g}, but {then[known][at]:.6g} in the program that "
                "was compiled earlier: it depends on a variable that was changed since then, which must be made an "
                "attribute of the problem"
            )
