"""Z(beta) of lattice phi^6 from infinite temperature down through a first-order transition, from one ladder."""

import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import workflows

model = lattices.phi6(L=8, mu2=2.2957)
curve = workflows.partition_function(model, beta=np.linspace(0, 1.5, 61), particles=300, progress=False)
at = curve.sel(beta=1.0, method="nearest")
print(f"log Z(1) = {float(at.log_z):.3f} +- {float(at.log_z_err):.3f}, {'trusted' if curve.trusted else curve.why}")
peak = int(curve.heat_capacity_curve.values.argmax())
print(f"C has its peak at beta = {float(curve.beta_curve[peak]):.3f}: ", end="")
print(f"{float(curve.heat_capacity_curve[peak]):.0f} +- {float(curve.heat_capacity_curve_err[peak]):.0f}")

shown = {"log_z": r"$\log Z$", "energy": r"$\langle U\rangle$", "heat_capacity": "$C$"}
with observables.plot.style():
    figure, axes = plt.subplots(1, 3, figsize=(6.4, 2.4))
    for ax, (name, label) in zip(axes, shown.items(), strict=True):
        value, error = curve[f"{name}_curve"], curve[f"{name}_curve_err"]
        ax.plot(curve.beta_curve, value)
        ax.fill_between(curve.beta_curve, value - error, value + error, alpha=0.3, linewidth=0)
        ax.set(xlabel=r"$\beta$", ylabel=label)
    figure.savefig("z_of_beta.png")
