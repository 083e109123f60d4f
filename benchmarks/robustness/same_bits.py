"""Hashes of every array of a few runs: the same before and after a change that must not change a number.

    python -m benchmarks.robustness.same_bits --out before.json       in the tree before
    python -m benchmarks.robustness.same_bits --against before.json   in the tree after

It imports only public names and nothing of the other benchmarks, so that it can be copied into an older tree.  With `-m`,
and the root of a tree as the current directory, that tree is the one that is imported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import lattices
import observables
import quenchphys as qp
import workflows


def digest(values: Any) -> str:
    array = np.ascontiguousarray(values)
    return hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def of_dataset(name: str, data: xr.Dataset) -> dict[str, str]:
    return {f"{name}/{variable}": digest(data[variable].values) for variable in sorted(map(str, data.variables))}


def of_ladder(name: str, ladder: qp.Ladder) -> dict[str, str]:
    found = {}
    for group in ("levels", "particles", "prior", "configurations"):
        found |= of_dataset(f"{name}/{group}", getattr(ladder, group))
    return found


def hashes() -> dict[str, str]:
    phi6 = qp.quench(lattices.phi6(L=8, mu2=2.2957), particles=200, replicas=4, seed=1, progress=False)
    spike = qp.quench(qp.targets.spike_slab(10), particles=200, replicas=2, seed=2, progress=False)
    tempered = qp.temper(lattices.phi6(L=8, mu2=2.2957), particles=200, replicas=2, seed=3, progress=False)
    found = of_ladder("phi6", phi6) | of_ladder("spike_slab", spike) | of_ladder("tempered", tempered)
    pool = observables.Pool(phi6)
    answers = {
        "partition_function": observables.partition_function(pool, beta=[0.3, 1.0]),
        "thermodynamics": observables.thermodynamics(pool, beta=[0.3, 1.0]),
        "density_of_states": observables.density_of_states(pool),
        "energy_distribution": observables.energy_distribution(pool),
        "order_parameters": observables.order_parameters(pool, mu2=[2.29, 2.30]),
        "phase_weights": observables.phase_weights(pool, by="q", cut=1.25),
        "phase_averages": observables.phase_averages(pool, by="q", cut=1.25),
        "distribution": observables.distribution(pool, "q"),
        "equal_weight": observables.equal_weight(pool, by="q", cut=1.25),
        "equal_height": observables.equal_height(pool, by="q", cut=1.25),
        "posterior": observables.posterior(pool, draws=100),
        "quadrature": observables.quadrature(pool),
        "tempered thermodynamics": observables.thermodynamics(tempered, beta=[0.5, 0.9]),
    }
    for name, data in answers.items():
        found |= of_dataset(f"observables/{name}", data)
    found |= of_dataset("coexistence", workflows.coexistence(L=4, bracket=(2.25, 2.40), progress=False))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for the hashes")
    parser.add_argument("--against", type=Path, help="file of an earlier run to compare with")
    chosen = parser.parse_args(arguments)
    found = hashes()
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1))
    for run in dict.fromkeys(name.split("/")[0] for name in found):
        own = {name: value for name, value in found.items() if name.split("/")[0] == run}
        print(f"{run:<14}{len(own):>4} arrays  {hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]}")
    if not chosen.against:
        return 0
    before = json.loads(chosen.against.read_text())
    different = [name for name in sorted({*before, *found}) if before.get(name) != found.get(name)]
    for name in different:
        print(f"differs: {name}  {before.get(name, 'absent')} -> {found.get(name, 'absent')}")
    print(f"{len(before)} arrays before, {len(found)} after, {len(different)} different")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
