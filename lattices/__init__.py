"""Which lattice models are sampled: scalar fields with exact free-field priors, and what mean field says of them."""

from lattices.correlation import correlation_length
from lattices.field import ScalarField
from lattices.meanfield.landscape import MeanField
from lattices.models import phi4, phi6, scalar_field, scalar_field_on_graph
from lattices.symmetry import orbit_average, point_group, translations


def mean_field(model: ScalarField) -> MeanField:
    """Minima, coexistence, barrier and Gaussian phases of a model."""
    return model.mean_field


__all__ = [
    "MeanField",
    "ScalarField",
    "correlation_length",
    "mean_field",
    "orbit_average",
    "phi4",
    "phi6",
    "point_group",
    "scalar_field",
    "scalar_field_on_graph",
    "translations",
]
