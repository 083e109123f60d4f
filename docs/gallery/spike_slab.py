"""A first-order transition with exact answers: quenching finds the spike, tempering does not."""

import matplotlib.pyplot as plt

import observables
import quenchphys as qp

target = qp.targets.spike_slab(20)
ladders = {"quench": qp.quench(target, particles=400, seed=0), "temper": qp.temper(target, particles=400, seed=0)}
print(f"exact: log Z {target.log_z:.3f}, spike 0.900")

with observables.plot.style():
    figure, ax = plt.subplots(figsize=(4.8, 2.8))
    for name, ladder in ladders.items():
        z, spike = observables.partition_function(ladder), observables.order_parameters(ladder)
        print(f"{name}: log Z {float(z.log_z):.3f} +- {float(z.log_z_err):.3f}, spike {float(spike.spike):.3f}")
        found = observables.density_of_states(ladder)
        ax.plot(found.energy, found.log_g, label=name)
    ax.set(xlabel="energy $E$", ylabel=r"$\log g(E)$")
    ax.legend()
    figure.savefig("spike_slab.png")
