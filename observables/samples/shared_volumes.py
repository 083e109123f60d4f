"""Volumes that all groups of a bridge share.

The chains of a bridge are in equilibrium at every beta, so its groups sampled the same densities, and one set of volumes
serves them all: WHAM on all samples together.  (Volumes of single groups have large errors, and the mean of their Z would
be high by half the variance of their log Z: 0.08 nats where log Z is known to 0.1.)

The jackknife leaves a group out of the volumes too.  To first order in delta_l = log G_l without the group - log G_l, that
multiplies the weight of every sample by

    1 + sum_l p_l(U) delta_l,     p_l = (n_l f_l / G_l) / D,

which is a function of U alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from observables.samples.of_ladders import Replica
from observables.samples.wham import with_self_consistent_volumes

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class SharedVolumes:
    """How the weight of a sample changes when a group is left out of the volumes."""

    energy: Array  # (node,)
    change: Array  # (group, node): sum_l p_l delta_l

    def of_group(self, group: int, energy: Array) -> Array:
        """The relative change of the weights of samples of these energies without a group."""
        return np.interp(energy, self.energy, self.change[group])


def with_shared_volumes(replicas: Sequence[Replica]) -> list[Replica]:
    """The groups of a bridge with the volumes of all of them."""
    whole = with_self_consistent_volumes(_joined(replicas))
    delta = []
    for left_out in replicas:
        rest = _joined([replica for replica in replicas if replica is not left_out])
        rest = dataclasses.replace(rest, log_volume=whole.log_volume)  # close to the solution
        delta.append(with_self_consistent_volumes(rest).log_volume - whole.log_volume)
    energy = whole.grid.energy[whole.grid.weight > 0]
    change = np.empty((len(replicas), len(energy)))
    for rows, near, share in whole.mixture.shares(energy):
        change[:, rows] = np.array(delta)[:, near] @ share.T
    shared = SharedVolumes(energy, change)
    return [
        dataclasses.replace(replica.with_volumes(whole.log_volume), shared=shared, group=group)
        for group, replica in enumerate(replicas)
    ]


def _joined(replicas: Sequence[Replica]) -> Replica:
    """The samples of several groups at the same levels as one replica; only energies are kept."""
    return dataclasses.replace(
        replicas[0],
        particle_energy=np.concatenate([replica.particle_energy for replica in replicas], axis=1),
        log_weight=np.concatenate([replica.log_weight for replica in replicas], axis=1),
        prior_energy=np.concatenate([replica.prior_energy for replica in replicas]),
        log_volume=np.mean([replica.log_volume for replica in replicas], axis=0),
        particle_observables={},
        prior_observables={},
    )
