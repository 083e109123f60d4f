"""Coexistence of phi^6 by what an expert would run instead: multicanonical HMC in q = mean phi^2.

    python -m benchmarks.rivals.multicanonical --L 16
    python -m benchmarks.rivals.multicanonical --L 40 --seconds 2400 --plot out/multicanonical_40.png

Chains sample exp(-S - B(q)).  B makes P(q) flat between the two phases and is constant beyond them, so a chain travels
from one to the other; weights exp(B(q) - (mu2' - mu2) V q / 2) are exact at any mu2'.  mu2* is where half of the weight has
q > 1.25.

The bias is learnt from the mean force,  F'(q) = < phi . grad S >_q / (2 q) - (V/2 - 1)/q,  F = -log P(q): first by chains
held at points along q, half of them pulled there from either phase, then by the same chains without constraint.  It is fixed
before anything is counted.  The mean force of the counted part, integrated, gives a second value of mu2*, independent of how
often each q was visited.

The field moves on its sites: at L = 40 on a CPU a gradient there takes a quarter of the time of one in the mode basis.
Errors come from a jackknife over chains.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.rivals.flat_chains import Sampler, learn
from benchmarks.rivals.flat_estimates import summary
from quenchphys.parallel.compile_cache import keep_compiled_programs

REFERENCE = {8: (2.2948, 2e-4), 16: (2.28658, 6e-5), 24: (2.2846, 2e-4)}
EFFORT_PER_SITE = 0.03  # trajectories of a round while the bias is learnt
TRAJECTORIES = 200  # of a round while counting


def show(found: dict[str, Any]) -> None:
    trips = np.array(found["round_trips"])
    print(
        f"{found['seconds']:6.0f} s, {found['cpu_seconds']:6.0f} CPU s, {found['site_gradients']:.3g} site-gradients, "
        f"{found['trajectories']} trajectories: mu2* = {found['mu2']:.5f} +- {found['mu2_err']:.5f}, by force "
        f"{found['mu2_by_force'][0]:.5f} +- {found['mu2_by_force'][1]:.5f}, {trips.sum()} round trips",
        flush=True,
    )


def table(found: dict[str, Any]) -> None:
    trips = np.array(found["round_trips"])
    print(
        f"\nmulticanonical HMC, phi^6 L = {found['L']}, {found['chains']} chains of {found['trajectories']} trajectories"
    )
    rows = {"all": (found["mu2"], found["mu2_err"]), **found["parts"], "by mean force": found["mu2_by_force"]}
    for name, (value, error) in rows.items():
        print(f"    mu2*, {name:<16} {value:.5f} +- {error:.5f}")
    for one, other in (("early", "late"), ("from disordered", "from ordered")):
        (a, a_err), (b, b_err) = found["parts"][one], found["parts"][other]
        print(f"    {one} against {other}: {(a - b) / np.hypot(a_err, b_err):+.2f} standard errors")
    if found["L"] in REFERENCE:
        value, error = REFERENCE[found["L"]]
        z = (found["mu2"] - value) / np.hypot(found["mu2_err"], error)
        print(f"    reference {value} +- {error}: {z:+.2f} standard errors")
    print(f"    error expected of so many round trips {found['error_expected_of_round_trips']:.5f}")
    print(f"    round trips {trips.sum()}, of a chain {trips.min()} to {trips.max()}: {' '.join(map(str, trips))}")
    print(f"    autocorrelation of q {found['tau_q']:.0f} trajectories of {found['gradients']} gradients")
    barrier, peaks = found["distribution"]["barrier"], found["distribution"]["peaks"]
    print(f"    peaks of P(q) at {peaks[0]:.3f} and {peaks[1]:.3f}, barrier {barrier:.1f} nats")
    met = np.interp(np.arange(0.2, 1.9, 0.1), found["distribution"]["q"], found["distribution"]["met"])
    print(f"    visits at q = 0.2, 0.3, ... 1.8 relative to all: {' '.join(f'{m:.2f}' for m in met)}")
    print(
        f"    acceptance {found['acceptance']:.2f}, {found['site_gradients']:.3g} site-gradients in "
        f"{found['seconds']:.0f} s ({found['cpu_seconds']:.0f} CPU s), of which the bias took "
        f"{found['bias_site_gradients']:.3g} in {found['bias_seconds']:.0f} s"
    )


def draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    shape = found["distribution"]
    left.plot(shape["q"], shape["log_p"])
    left.set(xlabel="q", ylabel="log P(q)", title=f"L = {found['L']}, mu2 = {found['mu2']:.5f}")
    right.plot(shape["q"], shape["met"])
    right.set(xlabel="q", ylabel="visits relative to all", ylim=(0, None))
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, default=16)
    parser.add_argument(
        "--mu2", type=float, default=2.285, help="where the chains run; any value near coexistence will do"
    )
    parser.add_argument("--chains", type=int, default=48)
    parser.add_argument("--gradients", type=int, default=48, help="of a trajectory, on average")
    parser.add_argument("--effort", type=int, help="trajectories of a round while the bias is learnt")
    parser.add_argument("--seconds", type=float, default=120, help="wall time of the counted part")
    parser.add_argument("--error", type=float, default=0.0, help="stop early where this error of mu2* is reached")
    parser.add_argument("--every", type=float, default=20, help="seconds between reports")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/multicanonical.json"))
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args(arguments)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    keep_compiled_programs()
    timer = harness.Timer()
    sampler = Sampler(chosen.L, chosen.mu2, chosen.chains, chosen.gradients, chosen.seed)
    spline = learn(sampler, chosen.effort or max(20, round(EFFORT_PER_SITE * sampler.sites)))
    learnt = {"bias_seconds": timer.wall, "bias_site_gradients": sampler.spent}
    print(f"bias learnt in {learnt['bias_seconds']:.0f} s, step size {sampler.step:.3f}", flush=True)

    rounds: list[tuple[np.ndarray, np.ndarray, float]] = []
    begun = shown = timer.wall
    while True:
        rounds.append(sampler.run(TRAJECTORIES))
        now = timer.wall
        finished = now - begun > chosen.seconds
        if not finished and now - shown < chosen.every:
            continue
        shown = now
        q, force = (np.concatenate([r[i] for r in rounds]) for i in (0, 1))
        burn_in = len(q) // 10
        found = {
            "L": chosen.L,
            "chains": chosen.chains,
            "gradients": chosen.gradients,
            "seed": chosen.seed,
            "step_size": sampler.step,
            "acceptance": float(np.mean([r[2] for r in rounds])),
            **timer.costs(),
            "site_gradients": sampler.spent,
            **learnt,
            **summary(sampler, spline, q[burn_in:], force[burn_in:]),
        }
        chosen.out.write_text(json.dumps(found, indent=1))
        show(found)
        # Few round trips can agree by chance: both errors must be small.
        if finished or max(found["mu2_err"], found["error_expected_of_round_trips"]) <= chosen.error:
            break
    table(found)
    if chosen.plot:
        draw(found, chosen.plot)


if __name__ == "__main__":
    main()
