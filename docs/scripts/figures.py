"""Every figure and table of the documentation, made again by the commands that are shown beside them.

    python docs/scripts/figures.py                      # everything, cheapest first (make figures)
    python docs/scripts/figures.py --minutes 2          # what takes at most two minutes of processor time
    python docs/scripts/figures.py scaling_phi6 gallery # some of it, by name or group
    python docs/scripts/figures.py --list

What a command prints is kept in docs/numbers/<name>.txt, which the pages show.  Printed again, every number with an error is
compared with the one kept: a line for each that changed beyond the errors of both, and exit code 1 if there is one.  Groups:
drawings, gallery, workflows, paper (its tables and figures), benchmarks (accuracy), and speed (times, for a machine with
nothing else to do).  Experiments of the paper go on where they were interrupted; those with networks read the five CSV files
of the data sets from out/uci.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = ROOT / "docs" / "numbers"
SCRATCH = ROOT / "out" / "figures"  # results and ladders, made anew every time
BEYOND = 3.0  # errors of the difference; of a thousand numbers with other random numbers three are further apart
VALUE = re.compile(
    r"(-?\d+(?:\.(\d+))?)\((\d+(?:\.\d+)?)\)|(-?\d+(?:\.\d+)?(?:e-?\d+)?) \+- (\d+(?:\.\d+)?(?:e-?\d+)?)"
)


@dataclass(frozen=True)
class Entry:
    """One command: its name, what it runs, and its processor time in minutes on an ordinary core."""

    name: str
    group: str
    command: str
    minutes: float


def _workflow(name: str, command: str, minutes: float) -> Entry:
    return Entry(name, "workflows", f"quenchphys {command}", minutes)


def _experiment(name: str, minutes: float, effort: str = "standard", data: bool = False) -> Entry:
    """A table or figure of the paper."""
    files = " --data out/uci" if data else ""
    title = f"reproduction_{name.replace('-', '_')}"
    return Entry(title, "paper", f"quenchphys reproduce {name} --effort {effort}{files}", minutes)


def _drawing(name: str, minutes: float, arguments: str = "") -> Entry:
    return Entry(name, "drawings", f"python docs/scripts/{name}.py {arguments}".strip(), minutes)


def _example(name: str, minutes: float) -> Entry:
    return Entry(f"gallery_{name}", "gallery", f"python docs/gallery/{name}.py", minutes)


def _benchmark(name: str, arguments: str, minutes: float) -> Entry:
    return Entry(name, "benchmarks", f"python -m benchmarks.{arguments}", minutes)


def _speed(name: str, arguments: str, minutes: float) -> Entry:
    """A measurement of times, for a machine with nothing else to do."""
    return Entry(name, "speed", f"python -m benchmarks.{arguments}", minutes)


ENTRIES = [
    _drawing("soft_levels", 0.1),
    _drawing("softness", 1),
    _drawing("spike_slab", 1, "--out docs/figures"),
    _drawing("phi6_ladder", 1),
    _drawing("phi6_configurations", 2),
    _drawing("spike_slab_barrier", 6, "out/figures/spike_slab_barrier"),
    _drawing("which_method", 6, "--figure docs/figures/which_method.png"),
    _example("free_field", 0.5),
    _example("spike_slab", 0.5),
    _example("custom_kernel", 0.5),
    _example("own_field", 0.7),
    _example("xy_field", 1),
    _example("z_of_beta", 0.5),
    _example("coexistence", 1),
    _example("lennard_jones", 1.5),
    _workflow("coexistence_L8", "coexistence --L 8 --bracket 2.25 2.33", 1),
    _workflow("coexistence_L16", "coexistence --L 16 --bracket 2.27 2.30", 1),
    _workflow("partition_function", "zbeta --L 16 --set mu2=2.2866 --beta 0 1.2 121", 3),
    _workflow("scaling_phi6", "fss --sizes 8 12 16 24 --bracket 2.25 2.33", 5),
    _workflow("scaling_phi4", "fss --model phi4 --set lam=0.25 --sizes 8 12 16 24 32 --bracket -1.35 -1.20", 20),
    _workflow("phase_diagram", "phase-diagram", 14),
    _workflow("coexistence_32_cubed", "coexistence --shape 32 32 32 --bracket 2.31 2.36 --method phases --error 1e-5", 6),
    _workflow("coexistence_L64", "coexistence --L 64 --bracket 2.27 2.30 --method crossing", 30),
    _experiment("analytic", 60),
    _experiment("networks", 15, data=True),
    _experiment("bayes-factors", 45, data=True),
    _experiment("phi6", 20),
    _experiment("mobility", 4),
    _experiment("path-length", 7),
    _experiment("budget", 4),
    _experiment("sketch", 0.2),
    _experiment("scaling", 8),
    _experiment("marginal", 3),
    _experiment("barrier", 12, data=True),
    _experiment("configurations", 8),
    _experiment("softness", 8),
    _experiment("cadence", 14),
    _experiment("radial", 6),
    _benchmark("few_crossings", "accuracy.few_crossings", 1),
    _benchmark("interface_tension", "accuracy.interface_tension --figure docs/figures/interface_tension.png", 20),
    _benchmark(
        "large_lattices", "accuracy.large_lattices 8 12 16 24 40 64 128 256 --figure docs/figures/large_lattices.png", 40
    ),
    _benchmark("critical_plane", "accuracy.critical_points plane", 30),
    _benchmark("critical_small", "accuracy.critical_points small strong --seeds 20", 30),
    _benchmark("critical_cube", "accuracy.critical_points cube", 13),
    _benchmark("critical_continuum", "accuracy.critical_points continuum", 50),
    _benchmark("reweighting", "accuracy.reweighting 400 8", 2),
    _benchmark("closed_forms", "accuracy.closed_forms 400", 2),
    _benchmark("free_fields", "accuracy.lattice_validation free", 3),
    _benchmark("phi6_share", "accuracy.lattice_validation phi6", 3),
    _benchmark("phi4_literature", "accuracy.lattice_validation phi4", 3),
    _benchmark("other_priors", "accuracy.other_priors", 3),
    _benchmark("integration", "accuracy.thermodynamic_integration out/figures/partition_function/result.nc", 4),
    _benchmark("error_ratio", "accuracy.error_ratio", 6),
    _benchmark("zscores", "accuracy.zscores 200", 6),
    _benchmark("coexistence_seeds_40", "accuracy.coexistence_seeds 40 --seeds 4", 14),
    _benchmark("coexistence_seeds_40_few", "accuracy.coexistence_seeds 40 --seeds 8 --sweeps 176", 16),
    _benchmark("gaussian_10", "accuracy.analytic gaussian 10 --replicas 16", 1),
    _benchmark("gaussian_100", "accuracy.analytic gaussian 100 --volumes", 4),
    _benchmark("gaussian_1000", "accuracy.analytic gaussian 1000", 60),
    _benchmark("spike_slab_10", "accuracy.analytic spike_slab 10 --replicas 32", 2),
    _benchmark("spike_slab_50", "accuracy.analytic spike_slab 50 --volumes --replicas 32 --seed 1", 15),
    _benchmark("spike_slab_200", "accuracy.analytic spike_slab 200", 30),
    _benchmark("spike_slab_500", "accuracy.analytic spike_slab 500 --softness auto --particles 300 --volumes", 60),
    _benchmark("bimodal_100", "accuracy.analytic bimodal 100 --replicas 10", 10),
    _benchmark("spike_slab_10_tempered", "accuracy.analytic spike_slab 10 --method temper --replicas 16", 1),
    _speed("critical_slowing", "speed.critical_slowing", 12),
    _speed("transforms", "speed.transforms", 1),
    _speed("stencil", "speed.stencil", 1),
    _speed("level_profile", "speed.level_profile", 2),
    _speed("mode_basis", "speed.mode_basis sampling", 3),
    _speed("replica_sets", "speed.replica_sets", 3),
    _speed("second_start", "speed.second_start", 4),
    _speed("devices", "speed.devices", 4),
    _speed("throughput", "speed.throughput --rounds 3", 10),
    _speed("time_to_error_16", "rivals.time_to_error --L 16 --seconds 60", 10),
    _speed("time_to_error_24", "rivals.time_to_error --L 24 --without multicanonical exchange temper", 18),
    _speed("growth", "speed.growth --sizes 8 16 24 40", 10),
    _speed("growth_64", "speed.growth --sizes 64", 30),
    _speed("checkpoint_cost", "speed.checkpoint_cost 1 450", 30),
    _speed("multicanonical_40", "rivals.multicanonical --L 40 --mu2 2.2838 --seconds 110 --seed 5", 5),
    _speed("multicanonical_40_long", "rivals.multicanonical --L 40 --mu2 2.2838 --seconds 500 --seed 3", 20),
]  # fmt: skip


def numbers(text: str) -> dict[str, tuple[float, float]]:
    """Every number with an error in a printed text, by the words before the first one in its line and its place in it.

    >>> numbers("  mu2, equal weight   2.29466(30)")
    {'mu2, equal weight': (2.29466, 0.0003)}
    """
    found: dict[str, tuple[float, float]] = {}
    for line in text.splitlines():
        matches = list(VALUE.finditer(line))
        for place, match in enumerate(matches):
            label = " ".join(line[: matches[0].start()].replace("|", " ").split())
            label += f", number {place + 1}" if place else ""
            while label in found:
                label += "'"
            found[label] = _value(match)
    return found


def _value(match: re.Match[str]) -> tuple[float, float]:
    shown, decimals, digits, value, error = match.groups()
    if value is not None:
        return float(value), float(error)
    return float(shown), float(digits) if "." in digits else float(digits) * 10.0 ** -len(decimals or "")


def compared(before: str, after: str) -> list[str]:
    """What changed beyond errors, what vanished, and what is new, one line each."""
    old, new = numbers(before), numbers(after)
    lines = []
    for label in old | new:
        if label not in new or label not in old:
            lines.append(f"{label}: {'no longer printed' if label in old else 'new'}")
            continue
        (was, was_err), (now, now_err) = old[label], new[label]
        away = abs(now - was) / max((was_err**2 + now_err**2) ** 0.5, 1e-300) if now != was else 0.0
        if away > BEYOND:
            lines.append(f"{label}: {was:g} +- {was_err:g} became {now:g} +- {now_err:g}, {away:.1f} errors apart")
    return lines


def other_changes(before: str, after: str) -> int:
    """Lines of the new text that are not in the old one, apart from their numbers with errors."""

    def words(text: str) -> list[str]:
        return [" ".join(VALUE.sub("", line).split()) for line in text.splitlines()]

    return len(set(words(after)) - set(words(before)))


def made(entry: Entry) -> tuple[str, float, int]:
    """What a command prints, its processor time in seconds, and its exit code."""
    if entry.group != "paper":  # whose parts take hours, and are kept
        shutil.rmtree(SCRATCH / entry.name, ignore_errors=True)
    SCRATCH.joinpath(entry.name).mkdir(parents=True, exist_ok=True)
    before = _processor_time()
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    # An example writes its picture to the folder it runs in.
    folder = ROOT / "docs" / "gallery" if entry.group == "gallery" else ROOT
    run = subprocess.run(_words(entry), cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    return run.stdout, _processor_time() - before, run.returncode


def _words(entry: Entry) -> list[str]:
    """The command as it is run: by this Python, from any folder, and with its files where they belong."""
    program, *words = shlex.split(entry.command)
    words = [str(ROOT / word) if word.startswith(("docs/", "out/")) else word for word in words]
    if program == "python":
        return [sys.executable, *words]
    picture, result = ROOT / "docs" / "figures" / f"{entry.name}.png", SCRATCH / entry.name / "result.nc"
    return [sys.executable, "-m", program, *words, "--out", str(result), "--plot", str(picture), "--silent"]


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _commit() -> str:
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def renewed(entry: Entry) -> bool:
    """Run one command, keep what it prints, and say what changed; whether nothing changed beyond errors."""
    path = NUMBERS / f"{entry.name}.txt"
    before = path.read_text() if path.exists() else None
    print(f"{entry.name}: {entry.command}", flush=True)
    text, seconds, code = made(entry)
    if code not in (0, 1):  # 1: a result that is not to be trusted, which is printed
        print(f"  failed with exit code {code}; what was kept stays", flush=True)
        return False
    # Where a picture was drawn is a path of this machine.
    text = "\n".join(line.rstrip() for line in text.splitlines() if not line.startswith("drawn in "))
    if not text.strip():
        print("  drawn, nothing printed", flush=True)
        return True
    NUMBERS.mkdir(exist_ok=True)
    path.write_text(f"$ {entry.command}\n# commit {_commit()}, {seconds:.0f} s of processor time\n\n{text.strip()}\n")
    if before is None:
        print("  new", flush=True)
        return True
    before = before.partition("\n\n")[2]
    changes = compared(before, text)
    for change in changes or ["nothing changed beyond errors"]:
        print(f"  {change}", flush=True)
    if count := other_changes(before, text):
        print(f"  lines that differ in words, or in numbers printed without an error: {count}", flush=True)
    return not changes


def chosen(names: list[str], minutes: float) -> list[Entry]:
    """The entries asked for, cheapest first."""
    known = {entry.name for entry in ENTRIES} | {entry.group for entry in ENTRIES}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"There is no figure or table '{unknown[0]}'; --list shows all of them.")
    wanted = [entry for entry in ENTRIES if not names or entry.name in names or entry.group in names]
    return sorted((entry for entry in wanted if entry.minutes <= minutes), key=lambda entry: entry.minutes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names or groups (default: all)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="leave out what takes longer")
    parser.add_argument("--list", action="store_true", help="print names, groups and times")
    options = parser.parse_args()
    entries = chosen(options.names, options.minutes)
    if options.list:
        for entry in entries:
            print(f"{entry.name:24s} {entry.group:12s} {entry.minutes:5.1f} min   {entry.command}")
        return 0
    same = [renewed(entry) for entry in entries]
    return 0 if all(same) else 1


if __name__ == "__main__":
    raise SystemExit(main())
