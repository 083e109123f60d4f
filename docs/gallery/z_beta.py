"""Z at every temperature from one ladder: free energy, energy and heat capacity of phi^6 across its transition."""

import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import workflows

model = lattices.phi6(L=8, mu2=2.2957)
curve = workflows.partition_function(model, beta=np.linspace(0.0, 1.3, 131), particles=400, seed=0)
top = int(curve.heat_capacity.argmax())
print(f"log Z(1) = {float(curve.log_z.sel(beta=1.0)):.3f} +- {float(curve.log_z_err.sel(beta=1.0)):.3f}")
print(f"heat capacity {float(curve.heat_capacity[top]):.0f} +- {float(curve.heat_capacity_err[top]):.0f} "
      f"at beta = {float(curve.beta[top]):.2f}, trusted: {bool(curve.trusted)}")  # fmt: skip

with observables.plot.style():
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.6))
    labels = {"log_z": r"$\log Z(\beta)$", "energy": r"$\langle U\rangle$", "heat_capacity": "$C$"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        value, error = curve[name], curve[f"{name}_err"]
        ax.plot(curve.beta, value)
        ax.fill_between(curve.beta, value - error, value + error, alpha=0.3, linewidth=0)
        ax.set(xlabel=r"$\beta$", ylabel=label)
    figure.savefig("z_beta.png")
