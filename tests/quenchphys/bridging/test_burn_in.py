"""Burn-in: long enough for the slowest chain, longer trajectories where it pays, and an outcome that says if it is not."""

import numpy as np

from quenchphys.bridging.burn_in import FORGOTTEN, LONGEST, SEEN, settle, taus
from quenchphys.bridging.chains import SWEEPS, Samples

GROUPS = 16


class Memory:
    """Chains whose energy forgets by a factor each trajectory, the faster the longer trajectories are."""

    def __init__(self, memory):
        self.memory = np.array(memory)
        self.rng = np.random.default_rng(3)
        self.x = self.rng.normal(size=(len(memory), GROUPS))
        self.steps = np.ones(len(memory), int)
        self.advanced = []

    def lengthen(self, factors):
        self.steps = self.steps * factors

    def advance(self, tune):
        rho = (self.memory**self.steps)[:, None]
        energy = np.empty((*self.x.shape, SWEEPS))
        for sweep in range(SWEEPS):
            self.x = rho * self.x + np.sqrt(1 - rho**2) * self.rng.normal(size=self.x.shape)
            energy[..., sweep] = self.x
        self.advanced.append(tune)
        levels = np.ones(len(self.memory))
        return Samples(energy, {"flat": np.zeros_like(energy)}, levels, levels)


def test_fast_chains_are_not_held_up():
    chains = Memory([0.1, 0.2])
    assert settle(chains, 32, lambda: None)
    assert list(chains.steps) == [1, 1] and SWEEPS * len(chains.advanced) <= 32 + 3 * SEEN


def test_trajectories_of_slow_chains_become_longer():
    """tau = (1 + rho)/(1 - rho) = 19 at rho = 0.9: two doublings bring it to 4.8."""
    chains = Memory([0.1, 0.9])
    assert settle(chains, 32, lambda: None)
    assert chains.steps[0] == 1 and chains.steps[1] in (4, 8)
    frozen = SWEEPS * chains.advanced[::-1].index(True)
    rho = 0.9 ** chains.steps[1]
    assert frozen >= 0.6 * FORGOTTEN * (1 + rho) / (1 - rho)


def test_chains_that_never_forget_are_not_settled():
    chains = Memory([0.2, 0.9999])
    assert not settle(chains, 32, lambda: None)
    assert SWEEPS * len(chains.advanced) < 4 * LONGEST and chains.steps[1] == 8


def test_the_slowest_quantity_counts():
    chains = Memory([0.5, 0.0])
    parts = [chains.advance(False) for _ in range(400)]
    found = taus(Samples.joined(parts))
    np.testing.assert_allclose(found, [3.0, 1.0], rtol=0.1)
