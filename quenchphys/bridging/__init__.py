"""Chains in equilibrium between a Gaussian and the phase near it: what `quenchphys.bridge` is made of."""
