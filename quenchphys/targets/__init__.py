"""Problems to sample: analytic targets with exact answers, Bayesian networks, and likelihoods of a user's own model."""

from quenchphys.targets.analytic import Bimodal, Gaussian, SpikeSlab, bimodal, gaussian, spike_slab
from quenchphys.targets.likelihoods import Likelihood, likelihood
from quenchphys.targets.networks import Network, network

__all__ = [
    "Bimodal",
    "Gaussian",
    "Likelihood",
    "Network",
    "SpikeSlab",
    "bimodal",
    "gaussian",
    "likelihood",
    "network",
    "spike_slab",
]
