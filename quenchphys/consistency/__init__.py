"""Consistency of a problem: whether its parts belong to one and the same prior and energy.

A wrong sign in a gradient, a prior twice too wide or a symmetry that changes U gives numbers like any other.  So before
anything is sampled, the parts of a problem are compared with each other on a few hundred prior draws x:

    prior        E[grad log pi] = 0  and  E[(x - c) . grad log pi] = -D,  over all coordinates and over groups of them
    gradients    energy_and_grad and log_prior_and_grad against derivatives of energy and log_prior, and these against
                 differences
    basis        log pi(x) - log pi(x') = -1/2 sum_j precision_j (y_j^2 - y'_j^2),  |y| = |x|,  from_modes(to_modes(x)) = x
    symmetries   U(s x) = U(x),  log pi(s x) = log pi(x),  |ds| = |dx|
    couplings    U at two values of a coupling differs by (difference) * factor * observable, where the problem can be
                 built at another value
    names        observables that phases and couplings mention are recorded

The identities of the prior are integrations by parts, which need a smooth density that vanishes at its boundary.  A prior
that fails one of them is therefore judged by another that every density obeys: for draws x from pi and a map T that moves
or stretches the space,

    E[pi(T x)/pi(x)] |det T| = 1,   or less than 1 if T moves draws out of the support of pi.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from quenchphys.consistency.couplings import check_couplings, rebuilt_by_itself
from quenchphys.consistency.gradients import check_gradients
from quenchphys.consistency.measurement import drawn, measured, spread_of
from quenchphys.consistency.prior import check_basis, check_draws, check_prior
from quenchphys.consistency.program import check_program
from quenchphys.consistency.shapes import check_names, check_shapes
from quenchphys.consistency.symmetries import check_symmetries
from quenchphys.labels import check_labels
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.problem import view

__all__ = ["check", "check_couplings", "check_program"]


def check(problem: Any) -> None:
    """Refuse a problem whose parts contradict each other, in one sentence with the number seen and the number expected.

    Every sampler calls it.  It takes a fraction of a second and looks at a few hundred prior draws, so it finds mistakes in
    formulas.  It cannot find a mode that no draw comes near, an error of a percent in the prior, or a wrong energy whose
    parts agree with each other.

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`; see `quenchphys.problem.Problem`.

    Raises
    ------
    TypeError, ValueError
        What is wrong, what was seen and what was expected.

    Examples
    --------
    >>> import lattices, quenchphys as qp
    >>> qp.check(lattices.phi6(L=8, mu2=2.29))
    """
    check_not_forked()
    keep_compiled_programs()
    with own_settings(), np.errstate(all="ignore"):  # energies may be infinite or NaN
        check_shapes(problem)
        seen = view(problem)
        check_labels(seen)
        check_names(seen)
        argument = seen.as_argument()
        x = drawn(argument)
        check_draws(argument, x)
        direction = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
        spread = spread_of(np.asarray(x))
        found = jax.device_get(measured(argument, x, spread, direction))
        check_gradients(found)
        check_basis(found)
        check_prior(argument, x, spread, found)
        check_symmetries(found)
        check_couplings(seen, partial(rebuilt_by_itself, seen))
