"""The `quenchphys` command: every workflow, single ladders, and a look at what was written.

Exit codes: 0 the answer can be trusted, 1 it cannot, 2 a wrong request, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from quenchphys.parallel.processes import ProcessLost, first, join
from quenchphys.settings import Settings
from workflows.budget import PARTICLES, SWEEPS

TRUSTED, DOUBTFUL, WRONG_REQUEST, INTERRUPTED = 0, 1, 2, 130

QUICK_PARTICLES, QUICK_REPLICAS, QUICK_SWEEPS = 200, 4, 320
EXAMPLES = """examples:
  quenchphys coexistence --L 16 --bracket 2.27 2.30 --out run.nc --plot run.png
  quenchphys fss --sizes 8 12 16 24 --bracket 2.25 2.33 --out fss.nc
  quenchphys fss --model phi4 --set lam=0.25 --sizes 8 16 32 --bracket -1.32 -1.22 --out critical.nc
  quenchphys zbeta --L 16 --set mu2=2.286 --beta 0 1.2 121 --out zbeta.nc
  quenchphys quench --L 16 --set mu2=2.286 --out ladder.nc
  quenchphys show run.nc
  quenchphys plot run.nc --out run.png

A file that exists is never replaced without --overwrite.  Ladders are kept beside the result, in a folder that ends in
.ladders: the same command again goes on where it was interrupted, and with --overwrite analyses them anew."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every failure is one sentence on standard error."""
    chosen = parser().parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # what they say is in the table
    try:
        with _joined(chosen):
            return chosen.run(chosen)
    except ProcessLost as gone:
        print(f"quenchphys: {gone}", file=sys.stderr, flush=True)
        os._exit(DOUBTFUL)  # JAX would wait for the process that is gone
    except KeyboardInterrupt as stopped:
        print(f"\n{stopped or 'Interrupted.'}", file=sys.stderr)
        return INTERRUPTED
    except RuntimeError as doubt:
        print(f"quenchphys: {doubt}", file=sys.stderr)
        return DOUBTFUL
    except (ValueError, TypeError, OSError, MemoryError) as wrong:
        print(f"quenchphys: {wrong}", file=sys.stderr)
        return WRONG_REQUEST


@contextmanager
def _joined(chosen: argparse.Namespace) -> Iterator[None]:
    """Together with other processes if that was asked for; only the first of them speaks."""
    given = {name: getattr(chosen, name, None) for name in ("coordinator", "processes", "process")}
    if all(value is None for value in given.values()):
        yield
        return
    join(**({} if given["coordinator"] == "auto" else given))
    if first():
        yield
        return
    chosen.silent = True
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="quenchphys",
        description="Free energies of lattice models across first-order transitions, by Quenched Ensemble Sampling.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = top.add_subparsers(required=True, metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], words: str, more: str = ""
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=f"{words}.  {more}".strip(), allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    point = command(
        "coexistence",
        _coexistence,
        "Find the coupling at which two phases weigh the same",
        "A pilot ladder finds it within the bracket, walkers between the two phases measure it: the coupling by equal "
        "weight and by equal height, the phases, the barrier between them, P(q), P(m) and P(E).",
    )
    _lattice(point)
    _tuned(point)
    _sampling(point)
    _walking(point)
    _output(point)

    scaling = command(
        "fss",
        _fss,
        "Follow a transition over several sizes to the infinite lattice",
        "First order: coexistence points and barriers; second order: Binder cumulants and exponents.  A finished size is "
        "not run again.",
    )
    scaling.add_argument(
        "--sizes", type=int, nargs="+", required=True, metavar="L", help="linear sizes, at least three"
    )
    scaling.add_argument("--order", choices=("first", "second"), help="of the transition (default: from mean field)")
    _model(scaling)
    _tuned(scaling)
    _sampling(scaling)
    _walking(scaling)
    _output(scaling)

    curve = command(
        "zbeta",
        _zbeta,
        "Z(beta), free energy, energy and heat capacity from one ladder",
    )
    curve.add_argument(
        "--beta",
        type=float,
        nargs=3,
        default=(0.0, 1.0, 101.0),
        metavar=("FROM", "TO", "NUMBER"),
        help="inverse temperatures, equally spaced (default: 0 1 101)",
    )
    _lattice(curve)
    _sampling(curve)
    _output(curve)

    single = command("quench", _quench, "Run one ladder and keep it as a file")
    _lattice(single)
    _sampling(single, Settings.particles)
    _output(single, needed=True)

    look = command("show", _show, "Say what a file holds: a result, or a ladder and whether to trust it")
    look.add_argument("file", type=Path)

    picture = command("plot", _plot, "Draw the figure of a result or of a ladder")
    picture.add_argument("file", type=Path)
    picture.add_argument("--out", type=Path, required=True, help="picture: .png, .pdf or .svg")
    return top


def _model(into: argparse.ArgumentParser) -> None:
    into.add_argument("--model", default="phi6", help="phi6 or phi4 (default: phi6)")
    into.add_argument(
        "--set",
        action="append",
        default=[],
        type=_coupling,
        metavar="NAME=VALUE",
        help="a coupling of the model, such as lam=-1 or eta=0.2; may be repeated",
    )


def _lattice(into: argparse.ArgumentParser) -> None:
    into.add_argument("--L", type=int, help="linear size of a square lattice")
    into.add_argument("--shape", type=int, nargs="+", help="lengths of any other periodic lattice, such as 6 6 6")
    _model(into)


def _tuned(into: argparse.ArgumentParser) -> None:
    into.add_argument(
        "--bracket",
        type=float,
        nargs=2,
        required=True,
        metavar=("LOW", "HIGH"),
        help="values with the transition between",
    )
    into.add_argument("--coupling", default="mu2", help="the coupling to be found (default: mu2)")


def _sampling(into: argparse.ArgumentParser, particles: int = PARTICLES) -> None:
    into.add_argument("--particles", type=int, help=f"size of a population (default: {particles})")
    into.add_argument("--replicas", type=int, help="independent populations, side by side; error bars come from them")
    into.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default: 0)")
    into.add_argument("--softness", type=float, help="softness nu of the levels (default: one that suits the lattice)")
    into.add_argument(
        "--quick", action="store_true", help=f"a rough answer soon: {QUICK_REPLICAS} x {QUICK_PARTICLES} particles"
    )
    many = into.add_argument_group("several processes", "each started with the same command but for --process")
    many.add_argument(
        "--coordinator", metavar="HOST:PORT", help="of the first process; auto on TPU slices and under Slurm"
    )
    many.add_argument("--processes", type=int, help="how many there are")
    many.add_argument("--process", type=int, help="which this is, from 0")


def _walking(into: argparse.ArgumentParser) -> None:
    into.add_argument(
        "--sweeps", type=int, help=f"of walkers between two phases: the error falls with the square root (default: {SWEEPS})"
    )


def _output(into: argparse.ArgumentParser, needed: bool = False) -> None:
    into.add_argument("--out", type=Path, required=needed, help="netCDF file to write")
    into.add_argument("--overwrite", action="store_true", help="replace an existing file; ladders are used again")
    if not needed:
        into.add_argument("--plot", type=Path, help="also draw the figure into this file")
    into.add_argument("--silent", action="store_true", help="no progress on standard error")


def _coupling(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a coupling is given as NAME=VALUE, such as lam=-1; got {text!r}") from None


def _effort(chosen: argparse.Namespace) -> dict[str, Any]:
    """Settings that were given; the others keep the workflow's defaults."""
    quick = {"particles": QUICK_PARTICLES, "replicas": QUICK_REPLICAS} if chosen.quick else {}
    if "sweeps" in chosen and chosen.quick:
        quick["sweeps"] = QUICK_SWEEPS
    given = {name: getattr(chosen, name, None) for name in ("particles", "replicas", "softness", "sweeps")}
    return quick | {name: value for name, value in given.items() if value is not None} | {"seed": chosen.seed}


def _kept(chosen: argparse.Namespace) -> dict[str, Any]:
    return {"out": chosen.out, "overwrite": chosen.overwrite, "progress": False if chosen.silent else None}


def _finish(result: Any, chosen: argparse.Namespace) -> int:
    from workflows.results.figures import save_figure
    from workflows.results.tables import summary

    print(summary(result))
    if chosen.plot is not None:
        print(f"drawn in {save_figure(result, chosen.plot)}")
    return TRUSTED if result.attrs["trusted"] else DOUBTFUL


def _check_picture(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"A picture ends in .png, .pdf or .svg; got {path}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be drawn, because the directory {path.parent} does not exist.")


def _coexistence(chosen: argparse.Namespace) -> int:
    import workflows

    _check_picture(chosen.plot)
    result = workflows.coexistence(
        L=chosen.L,
        shape=chosen.shape,
        bracket=tuple(chosen.bracket),
        model=chosen.model,
        coupling=chosen.coupling,
        **_effort(chosen),
        **_kept(chosen),
        **dict(chosen.set),
    )
    return _finish(result, chosen)


def _fss(chosen: argparse.Namespace) -> int:
    import workflows

    _check_picture(chosen.plot)
    result = workflows.finite_size_scaling(
        sizes=chosen.sizes,
        bracket=tuple(chosen.bracket),
        model=chosen.model,
        coupling=chosen.coupling,
        order=chosen.order,
        **_effort(chosen),
        **_kept(chosen),
        **dict(chosen.set),
    )
    return _finish(result, chosen)


def _zbeta(chosen: argparse.Namespace) -> int:
    import workflows

    _check_picture(chosen.plot)
    low, high, count = chosen.beta
    if not (0 <= low < high and count >= 2 and count == int(count)):
        raise ValueError(f"--beta takes two increasing numbers and how many; got {low:g} {high:g} {count:g}.")
    result = workflows.partition_function(
        _problem(chosen), beta=np.linspace(low, high, int(count)), **_effort(chosen), **_kept(chosen)
    )
    return _finish(result, chosen)


def _quench(chosen: argparse.Namespace) -> int:
    import observables
    from quenchphys.storage.netcdf import check_writable
    from workflows.budget import Effort

    problem = _problem(chosen)
    check_writable(chosen.out, overwrite=chosen.overwrite)
    settings = {"particles": Settings.particles, "replicas": 4, "softness": None} | _effort(chosen)
    checkpoint = chosen.out.with_suffix(".checkpoint")
    ladder = Effort(**settings).quench(problem, None, False if chosen.silent else None, checkpoint)
    ladder.save(chosen.out, overwrite=chosen.overwrite)
    shutil.rmtree(checkpoint)
    observables.report(ladder)
    print(f"written to {chosen.out}")
    return TRUSTED if ladder.outcome.trusted else DOUBTFUL


def _problem(chosen: argparse.Namespace) -> Any:
    from workflows.model_family import family

    couplings = dict(chosen.set)
    if "mu2" not in couplings:
        raise ValueError("The model needs a value of mu2: give it as --set mu2=VALUE.")
    return family(chosen.model, "mu2", {k: v for k, v in couplings.items() if k != "mu2"}, chosen.L, chosen.shape).at(
        couplings["mu2"]
    )


def _show(chosen: argparse.Namespace) -> int:
    import observables
    import quenchphys as qp
    from workflows.results.tables import summary

    found = _read(chosen.file)
    if isinstance(found, qp.Ladder):
        observables.report(found)
        return TRUSTED if found.outcome.trusted else DOUBTFUL
    print(summary(found))
    return TRUSTED if found.attrs["trusted"] else DOUBTFUL


def _plot(chosen: argparse.Namespace) -> int:
    import observables
    import quenchphys as qp
    from workflows.results.figures import save_figure

    _check_picture(chosen.out)
    found = _read(chosen.file)
    if isinstance(found, qp.Ladder):
        figure = observables.plot.ladder(found)[0].figure
        figure.savefig(chosen.out, dpi=160)
    else:
        save_figure(found, chosen.out)
    print(f"drawn in {chosen.out}")
    return TRUSTED


def _read(path: Path) -> Any:
    """A result of a workflow, or a ladder."""
    import quenchphys as qp
    from workflows.store import load_result

    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    try:
        return load_result(path)
    except ValueError:
        return qp.load(path)


if __name__ == "__main__":
    sys.exit(main())
