"""Coexistence of two phases of lattice phi^6: the point, and the barrier that grows with the lattice."""

import matplotlib.pyplot as plt

import observables
import workflows

SIZES = (8, 12)
points = {L: workflows.coexistence(L=L, progress=False) for L in SIZES}

with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.8))
    for L, point in points.items():
        print(f"L = {L}: mu2 = {float(point.mu2):.5f} +- {float(point.mu2_err):.5f}", end=", ")
        print(f"barrier {float(point.barrier):.3f} +- {float(point.barrier_err):.3f}", end=", ")
        print(f"{int(point.crossings.sum())} crossings, {'trusted' if point.trusted else point.why}")
        left.semilogy(point.q_axis, point.p_q, label=f"$L={L}$")
        right.plot(point.energy_axis / L**2, point.log_p_energy, label=f"$L={L}$")
    left.set(xlabel=r"$q=\langle\phi^2\rangle_x$", ylabel="$P(q)$", title="at equal weight", ylim=(1e-4, None))
    right.set(xlabel=r"$U/V$", ylabel=r"$\log P(U)$", ylim=(-13, 0))
    left.legend()
    figure.savefig("coexistence.png")
