"""Phases of a model and the depth a ladder needs, from the uniform field and its Gaussian fluctuations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lattices.meanfield import uniform
from lattices.meanfield.gaussian import GaussianField, GaussianPhase

NATS_BEYOND_COEXISTENCE = 10.0  # an ordered phase whose weight is lower by more than this is not expected
DEPTH_IN_STANDARD_DEVIATIONS = 4.0
COLDEST = 50.0  # the largest beta at which an ordered phase is searched for


@dataclass(frozen=True)
class MeanField:
    """Mean-field theory of a model; energies are of the whole lattice, potentials and barriers per site.

    `lattices.mean_field(model)` makes it.

    Examples
    --------
    >>> import lattices
    >>> found = lattices.phi6(L=40, mu2=2.2838).mean_field
    >>> found.two_phases, round(found.disordered.q, 2), round(found.ordered.q, 2)
    (True, 0.17, 1.98)
    """

    minima: tuple[float, ...]
    """fields phi >= 0 at the local minima of the potential"""
    ground_state_energy: float
    """the lowest U, of a uniform field; minus infinity if only the prior holds the field together"""
    coexistence_mu2: float | None
    """mu2 at which a uniform field has two equal minima (lam^2 / (2 eta) for phi^6); None: a continuous transition"""
    barrier: float | None
    """potential per site between these two minima, at that mu2"""
    q_cut: float | None
    """q half way between them"""
    disordered: GaussianPhase | None
    """self-consistent Gaussian around phi = 0"""
    ordered: GaussianPhase | None
    """self-consistent Gaussian around the outer minimum, None where it is unstable"""
    two_phases: bool
    """whether a ladder should meet an ordered and a disordered phase.

    Needs a first-order transition of the uniform field, mu2 below its coexistence (which fluctuations lower, as they are
    freer in the flatter disordered minimum) or above by less than ten nats in the weight of the ordered phase, and
    Gaussian phases on either side of q_cut."""
    stop_energy: float | None
    """energy below the ordered phase, None where no ordered phase is expected.

    It is the mean energy of the ordered phase at beta = 1 + 4/sigma, sigma the standard deviation of U at beta = 1:
    four standard deviations down on a large lattice, and above the ground state on any.  Where the ordered phase is
    stable only from some beta > 1 on, it is counted from there."""


def describe(
    eigenvalues: np.ndarray, stiffness: float, m0_sq: float, mu2: float, interaction: Mapping[int, float]
) -> MeanField:
    """Mean field of the model with these couplings; `eigenvalues` are those of minus the Laplacian, (sites,)."""
    sites = len(eigenvalues)
    energy_density = {2: (mu2 - m0_sq) / 2, **interaction}
    field = GaussianField(eigenvalues, stiffness, m0_sq, energy_density)
    disordered, ordered = field.disordered(), field.ordered()
    transition = uniform.coexistence(interaction)
    coldest = None
    if transition is not None:
        margin = 2 * NATS_BEYOND_COEXISTENCE / (sites * transition.ordered_q)  # d log weight / d mu2 = -V q / 2
        if mu2 <= transition.mu2 + margin:
            coldest = _below_ordered(field)
    two_phases = (
        transition is not None
        and coldest is not None
        and disordered is not None
        and disordered.q < transition.q_cut < coldest.q
    )
    return MeanField(
        minima=uniform.minima({2: mu2 / 2, **interaction}),
        ground_state_energy=sites * uniform.lowest(energy_density),
        coexistence_mu2=transition.mu2 if transition else None,
        barrier=transition.barrier if transition else None,
        q_cut=transition.q_cut if transition else None,
        disordered=disordered,
        ordered=ordered,
        two_phases=two_phases,
        stop_energy=coldest.energy if coldest else None,
    )


def _below_ordered(field: GaussianField) -> GaussianPhase | None:
    """The ordered phase, colder by four standard deviations of its energy than where it is first stable."""
    beta = 1.0
    while field.ordered(beta) is None:
        beta *= 1.05
        if beta > COLDEST:
            return None
    return field.ordered(beta + DEPTH_IN_STANDARD_DEVIATIONS / field.energy_std(field.ordered, beta))
