"""Cost of mu2* of phi^6 to a given error, by quenching and by what an expert would use instead.

    python -m benchmarks.rivals.time_to_error --L 16 --seconds 60          about ten minutes on two cores

    quench            workflows.coexistence with default settings, pilots included
    paper's preset    nu = 2, 64 steps of MALA in every level, as in the QES paper, with fewer particles
    temper            adaptive tempering with the engine's own HMC
    multicanonical    HMC in a bias that makes P(q) flat (multicanonical.py), `--seconds` after the bias is learnt
    exchange          parallel tempering with HMC (parallel_tempering.py), `--seconds` after tuning

The cost of the wanted error is scaled from the run, cost * (error/wanted)^2.  Pilots and the learning of the bias are scaled
along, which favours no method by more than their share of its cost.  A method that met only one phase has no error.
Compilation is included: no method finds programs in the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lattices
import observables
import quenchphys as qp
from benchmarks import harness
from benchmarks.speed.growth import measure

WANTED = 1e-4  # error of mu2*
COEXISTENCE = {8: 2.2948, 16: 2.2866, 24: 2.2849, 40: 2.2839}


def ladder(run: Any, L: int, **settings: Any) -> dict[str, Any]:
    """A ladder at coexistence: its cost, mu2*, and log Z of the disordered phase."""
    timer = harness.Timer()
    found = run(lattices.phi6(L=L, mu2=COEXISTENCE[L]), progress=False, **settings)
    row: dict[str, Any] = {"outcome": found.outcome.value, "levels": int(found.levels.level_count.max())}
    row |= {"site_gradients": found.attrs["gradients"] * L**2} | timer.costs()
    log_z = observables.partition_function(found, beta=[1.0])
    row |= {"log_z": float(log_z.log_z[0]), "log_z_err": float(log_z.log_z_err[0])}
    try:
        point = observables.equal_weight(found)
    except ValueError as refusal:
        return row | {"why": str(refusal)}
    return row | {"mu2": float(point.mu2), "mu2_err": float(point.mu2_err)}


def script(name: str, L: int, *options: str) -> dict[str, Any]:
    """The result of another benchmark."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "found.json"
        command = [sys.executable, "-m", f"benchmarks.rivals.{name}", "--L", str(L), "--out", str(out), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=harness.environment())
        return json.loads(out.read_text())


def row(name: str, found: dict[str, Any]) -> str:
    cost, cpu, wall, error = (found.get(key) for key in ("site_gradients", "cpu_seconds", "seconds", "mu2_err"))
    spent = f"{name:16s} {cost:14.3g} {cpu:7.0f} {wall:7.0f}"
    if not error:
        return f"{spent}   {found.get('outcome', 'one phase only')}"
    scaled = (error / WANTED) ** 2
    return f"{spent}   {found['mu2']:.5f} +- {error:.5f} {cost * scaled:14.3g} {cpu * scaled:9.0f} {wall * scaled:9.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, default=16, choices=sorted(COEXISTENCE))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--preset-particles", type=int, default=100)
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    L, seconds, seed = chosen.L, str(chosen.seconds), chosen.seed
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    paper = {"softness": 2.0, "target_ess": 0.95, "resample_ess": 0.5, "kernel": qp.MALA(steps=64)}
    methods = {
        "quench": lambda: measure(L, seed),
        "multicanonical": lambda: script("multicanonical", L, "--seconds", seconds, "--seed", str(seed)),
        "exchange": lambda: script(
            "parallel_tempering", L, "--seconds", seconds, "--seed", str(seed), "--mu2", str(COEXISTENCE[L])
        ),
        "temper": lambda: ladder(qp.temper, L, particles=400, replicas=8, seed=seed),
        "paper's preset": lambda: ladder(
            qp.quench, L, particles=chosen.preset_particles, replicas=8, seed=seed, **paper
        ),
    }
    print(f"phi^6, L = {L}; the last three columns are scaled to an error of {WANTED:g}")
    print("method           site-gradients   cpu s  wall s   mu2*                  site-gradients     cpu s    wall s")
    out = harness.OUT / f"time_to_error_{L}.json"
    found = json.loads(out.read_text()) if out.exists() else {}  # methods left out now keep their earlier results
    for name, method in methods.items():
        if name in chosen.without:
            continue
        found[name] = method()
        print(row(name, found[name]), flush=True)
        harness.save(out.stem, found)


if __name__ == "__main__":
    main()
