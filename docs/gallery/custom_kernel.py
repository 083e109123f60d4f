"""A kernel of your own: random-walk Metropolis, which needs no gradient, beside the kernels of quenchphys."""

from dataclasses import dataclass

import matplotlib.pyplot as plt

import observables
import quenchphys as qp
from quenchphys.kernels.base import metropolis


@dataclass(frozen=True)
class RandomWalk:
    """y' = y + eps sigma eta, accepted with min(1, rho(y')/rho(y))."""

    steps: int = 64
    step_size: float | None = None  # tuned by the ladder
    target_acceptance: float = 0.234

    def transitions(self, dimension):
        return self.steps

    def gradients(self):
        return 1.0  # evaluating a proposal computes its gradient too

    def first_step_size(self, dimension):
        return 2.4 / dimension**0.5

    def transition(self, stream, shared, point, density, step_size, scale):
        noise, accept = stream.split()
        proposal = density.evaluate(point.position + step_size * scale * noise.normal(point.position.shape))
        return metropolis(accept, density.log_change(point, proposal), proposal, point)


target = qp.targets.gaussian(10)
print(f"exact log Z {target.log_z:.3f}")
with observables.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    for place, kernel in enumerate((RandomWalk(), qp.MALA(steps=16), qp.HMC())):
        ladder = qp.quench(target, particles=400, replicas=4, seed=0, kernel=kernel)
        name, z = type(kernel).__name__, observables.partition_function(ladder)
        print(f"{name}: log Z {float(z.log_z):.3f} +- {float(z.log_z_err):.3f}, "
              f"lowest acceptance {float(ladder.levels.acceptance.min()):.2f}")  # fmt: skip
        left.errorbar(place, float(z.log_z), float(z.log_z_err), fmt="o", label=name)
        kept = ladder.levels.correlation.isel(quantity=0).mean("replica")
        right.plot(kept, label=name)
    left.axhline(target.log_z, color="0.3", linewidth=0.8)
    left.set(xticks=[0, 1, 2], xticklabels=["RandomWalk", "MALA", "HMC"], xlim=(-0.5, 2.5), ylabel=r"$\log Z$, exact: line")
    right.set(xlabel="level", ylabel="correlation of $U$ across a level")
    right.legend()
    figure.savefig("custom_kernel.png")
