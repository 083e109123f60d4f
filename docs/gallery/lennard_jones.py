"""A cluster of 13 Lennard-Jones atoms: hard cores, and the melting peak of the heat capacity from one ladder."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import observables
import quenchphys as qp

ATOMS, WIDTH, COLDEST = 13, 1.0, 5.0
PAIRS = np.triu_indices(ATOMS, 1)


class Cluster:
    """Atoms in units of sigma and epsilon, kept together by a Gaussian prior."""

    name = "Lennard-Jones cluster"

    def sample_prior(self, key, n):
        return WIDTH * jax.random.normal(key, (n, ATOMS, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum((x / WIDTH) ** 2)

    def energy(self, x):
        apart = x[PAIRS[0]] - x[PAIRS[1]]
        r6 = jnp.sum(apart**2, axis=-1) ** -3
        return 4.0 * jnp.sum(r6 * (r6 - 1.0))


deep = qp.EvidenceBelow(1e-3, beta=COLDEST)  # down to where nothing is left at beta = 5
ladder = qp.quench(Cluster(), particles=200, replicas=4, seed=0, stop=deep)
print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")
temperature = np.linspace(1 / COLDEST, 0.6, 60)
found = observables.thermodynamics(ladder, beta=1 / temperature)
peak = int(found.heat_capacity.argmax())
print(f"heat capacity {float(found.heat_capacity[peak]):.0f} at T = {temperature[peak]:.3f}")
kept = ladder.configurations.isel(replica=0)
coldest = np.asarray(kept.field[int(kept.level.argmax())])  # a configuration of the deepest level
print(f"lowest energy of a particle {float(ladder.particles.energy.min()):.2f} (icosahedron -44.33)")

with observables.plot.style():
    figure = plt.figure(figsize=(6.8, 2.8))
    left = figure.add_subplot(1, 2, 1, projection="3d")
    left.scatter(*coldest.T, s=500, c=coldest[:, 2], edgecolors="0.3", alpha=0.9)
    left.set(title="deepest level", xticks=[], yticks=[], zticks=[])
    right = figure.add_subplot(1, 2, 2)
    right.plot(temperature, found.heat_capacity)
    low, high = (found.heat_capacity + sign * found.heat_capacity_err for sign in (-1, 1))
    right.fill_between(temperature, low, high, alpha=0.3, linewidth=0)
    right.set(xlabel="temperature", ylabel="heat capacity $C$")
    figure.savefig("lennard_jones.png")
