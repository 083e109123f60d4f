"""An exact check: log Z of a free field from mass 1 down to mass 0.2, from one ladder, against the sum over modes."""

import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import quenchphys as qp

L = 12
ladder = qp.quench(lattices.scalar_field((L, L), mu2=0.1), particles=400, replicas=8, seed=0)
print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")

k2 = 4 * np.sin(np.pi * np.arange(L) / L) ** 2
k2 = k2[:, None] + k2[None, :]
mu2 = np.linspace(0.1, 0.6, 26)
exact = np.array([0.5 * np.log((k2 + 1.0) / (k2 + mass)).sum() for mass in mu2])
found = observables.partition_function(ladder, mu2=mu2)
away = (found.log_z - exact) / found.log_z_err
print(f"log Z at mu2 = 0.1: {float(found.log_z[0]):.3f} +- {float(found.log_z_err[0]):.3f}, exact {exact[0]:.3f}")
print(f"largest deviation {float(abs(away).max()):.1f} errors")

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    left.plot(mu2, exact, color="0.3", label="exact")
    left.errorbar(mu2, found.log_z, found.log_z_err, fmt=".", label="one ladder at 0.1")
    left.set(xlabel=r"$\mu^2$", ylabel=r"$\log Z$")
    left.legend()
    right.axhline(0.0, color="0.3", linewidth=0.8)
    right.errorbar(mu2, found.log_z - exact, found.log_z_err, fmt=".")
    right.set(xlabel=r"$\mu^2$", ylabel="difference from exact")
    figure.savefig("free_field.png")
