"""A field with two components (XY-like): the free field of `lattices` as prior, a rotation as symmetry, one ladder."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import quenchphys as qp

L, LAM = 8, 0.5
FREE = lattices.scalar_field((L, L), mu2=1.0)  # prior of each component
TURN = jnp.array([[0.28, -0.96], [0.96, 0.28]])  # a rotation by an irrational part of a turn


class Vectors:
    """U = sum_x (mu2 - 1)/2 |phi|^2 + lam |phi|^4 for phi of shape (2, L, L)."""

    name = "two-component phi^4"
    softness = 16.0
    symmetries = (lambda phi: jnp.tensordot(TURN, phi, 1),)

    def __init__(self, mu2):
        self.mu2 = mu2

    def sample_prior(self, key, n):
        return FREE.sample_prior(key, 2 * n).reshape(n, 2, L, L)

    def log_prior(self, phi):
        return FREE.log_prior(phi[0]) + FREE.log_prior(phi[1])

    def energy(self, phi):
        length2 = jnp.sum(phi**2, axis=0)
        return jnp.sum(0.5 * (self.mu2 - 1.0) * length2 + LAM * length2**2)

    def observe(self, phi):
        return {"abs_m": jnp.linalg.norm(phi.mean(axis=(1, 2))), "phi2": jnp.sum(phi**2)}

    @property
    def couplings(self):
        return {"mu2": (self.mu2, "phi2", 0.5)}


ladder = qp.quench(Vectors(mu2=-2.5), particles=400, replicas=4, seed=0)
print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")
mu2 = np.linspace(-2.6, -1.2, 29)
found = observables.order_parameters(ladder, mu2=mu2)
print(f"<|m|> = {float(found.abs_m[0]):.3f} +- {float(found.abs_m_err[0]):.3f} at mu2 = {mu2[0]:.2f}")

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.8), width_ratios=(1, 1.3))
    across, up = np.asarray(observables.posterior(ladder, draws=10).field)[0, 0]
    left.quiver(across, up, np.arctan2(up, across), cmap="twilight", pivot="mid")
    left.set(title=r"one configuration, $\mu^2=-2.5$", aspect="equal", xticks=[], yticks=[])
    right.errorbar(mu2, found.abs_m, found.abs_m_err, fmt=".-", markersize=3)
    right.set(xlabel=r"$\mu^2$", ylabel=r"$\langle|m|\rangle$", title="the same ladder at other couplings")
    figure.savefig("xy_field.png")
