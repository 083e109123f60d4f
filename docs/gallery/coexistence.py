"""A complete study in one call: the coexistence point of phi^6 on a lattice that is not square."""

import matplotlib.pyplot as plt

import observables
import workflows

result = workflows.coexistence(shape=(6, 10), bracket=(2.25, 2.33), sweeps=400, seed=0)
print(f"mu2 = {float(result.mu2):.4f} +- {float(result.mu2_err):.4f}, trusted: {bool(result.trusted)}")
print(f"barrier {float(result.barrier):.2f} +- {float(result.barrier_err):.2f} nats")

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    left.plot(result.q_axis, result.p_q)
    left.set(xlabel="$q$", ylabel="$P(q)$ at equal weight", ylim=(0, None))
    right.plot(result.mu2_group, result.group, "o", markersize=4)
    right.axvspan(*(float(result.mu2 + sign * result.mu2_err) for sign in (-1, 1)), alpha=0.25)
    right.set(xlabel=r"$\mu^2_*$ of each group of chains", ylabel="group")
    figure.savefig("coexistence.png")
