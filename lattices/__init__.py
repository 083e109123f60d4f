"""Lattice models: scalar fields with exact free-field priors, their mean-field theory and their symmetries."""

from lattices.correlation import correlation_length
from lattices.field import ScalarField
from lattices.meanfield.landscape import MeanField
from lattices.models import phi4, phi6, scalar_field, scalar_field_on_graph
from lattices.phase_field import PhaseField, phase_fields
from lattices.symmetry import orbit_average, point_group, translations


def mean_field(model: ScalarField) -> MeanField:
    """Mean-field theory of a model: minima, coexistence, barrier and Gaussian phases.

    Parameters
    ----------
    model
        A scalar field on any lattice.

    Returns
    -------
    MeanField
        Phases and energies that mean-field theory expects.  The same object is `model.mean_field`, computed once.

    Examples
    --------
    >>> import lattices
    >>> found = lattices.mean_field(lattices.phi6(L=16, mu2=2.2866))
    >>> round(found.coexistence_mu2, 6), round(found.q_cut, 6)
    (2.5, 1.25)
    """
    return model.mean_field


__all__ = [
    "MeanField",
    "PhaseField",
    "ScalarField",
    "correlation_length",
    "mean_field",
    "orbit_average",
    "phase_fields",
    "phi4",
    "phi6",
    "point_group",
    "scalar_field",
    "scalar_field_on_graph",
    "translations",
]
