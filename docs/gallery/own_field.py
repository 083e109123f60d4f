"""A lattice field with a potential of your own: phi^8, its two phases, and the coupling at which they coexist."""

import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import quenchphys as qp

model = lattices.scalar_field((8, 8), mu2=2.57, couplings={4: -0.9, 8: 0.05}, stiffness=2.0)
ladder = qp.quench(model, particles=400, replicas=4, seed=0)
print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")

point = observables.equal_weight(ladder)
mu2, error = float(point.mu2), float(point.mu2_err)
print(f"equal weight at mu2 = {mu2:.4f} +- {error:.4f}")

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    phi = np.linspace(-2.0, 2.0, 401)
    left.plot(phi, sum(c * phi**power for power, c in model.potential.items()))
    left.set(xlabel=r"$\phi$", ylabel=r"$V(\phi)$", ylim=(-1.0, 3.0))
    for shift in (-0.03, 0.0, 0.03):
        found = observables.distribution(ladder, of="q", mu2=mu2 + shift, bins=60)
        right.plot(found.q, found.p, label=rf"$\mu^2 = {mu2 + shift:.3f}$")
    right.set(xlabel="$q$", ylabel="$P(q)$", ylim=(0, None))
    right.legend()
    figure.savefig("own_field.png")
