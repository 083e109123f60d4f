"""Thirteen Lennard-Jones atoms in a soft trap: the heat capacity over temperature, from one ladder."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import observables
import quenchphys as qp

ATOMS, TRAP = 13, 0.9  # TRAP: standard deviation of the prior, in units of sigma
FIRST, SECOND = np.triu_indices(ATOMS, k=1)
ICOSAHEDRON = -44.3268  # the lowest energy, in units of epsilon
CORE = 0.7  # nearer than this the repulsion goes on in a straight line in r^2: no draw has an infinite energy


class Cluster:
    """U = sum of 4 (r^-12 - r^-6) over pairs; x has the shape (atom, 3)."""

    name = f"Lennard-Jones cluster of {ATOMS} atoms"
    symmetries = (lambda x: -x, lambda x: x[:, jnp.array([1, 2, 0])])

    def sample_prior(self, key, n):
        return TRAP * jax.random.normal(key, (n, ATOMS, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum((x / TRAP) ** 2)

    def energy(self, x):
        square = jnp.sum((x[FIRST] - x[SECOND]) ** 2, axis=-1)
        outside = jnp.maximum(square, CORE**2)
        inverse = outside**-3
        steepness = (24 * inverse - 12) * inverse / outside
        return jnp.sum(4 * (inverse - 1) * inverse + steepness * (outside - square))


temperature = np.linspace(0.15, 0.6, 91)
ladder = qp.quench(Cluster(), particles=400, replicas=8, seed=0, stop=qp.EvidenceBelow(1e-3, beta=1 / temperature[0]))
print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")
lowest = float(ladder.particles["energy"].min())
print(f"lowest energy met {lowest:.2f}, that of the icosahedron {ICOSAHEDRON:.2f}")
found = observables.thermodynamics(ladder, 1 / temperature)
peak = int(found.heat_capacity.values.argmax())
print(f"C of the positions has its peak at T = {temperature[peak]:.3f}: ", end="")
print(f"{float(found.heat_capacity[peak]):.1f} +- {float(found.heat_capacity_err[peak]):.1f}")

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.8))
    value, error = found.heat_capacity.values, found.heat_capacity_err.values
    left.plot(temperature, value)
    left.fill_between(temperature, value - error, value + error, alpha=0.3, linewidth=0)
    left.set(xlabel=r"$k_BT/\varepsilon$", ylabel=r"$C/k_B$", title="heat capacity")
    right.plot(temperature, found.energy / ATOMS)
    right.axhline(ICOSAHEDRON / ATOMS, color="0.6", linestyle=":", label="icosahedron")
    right.set(xlabel=r"$k_BT/\varepsilon$", ylabel=r"$\langle U\rangle/N\varepsilon$", title="energy per atom")
    right.legend()
    figure.savefig("lennard_jones.png")
