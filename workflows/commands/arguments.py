"""Arguments that several commands share: how they are declared, and how they are read."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from workflows import defaults

PICTURES = (".png", ".pdf", ".svg")


def add_model(parser: ArgumentParser) -> argparse._ArgumentGroup:
    """--model and --set."""
    group = parser.add_argument_group("model")
    names = " or ".join(defaults.MODEL_NAMES)
    group.add_argument("--model", default="phi6", metavar="NAME", help=f"{names} (default: phi6)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=coupling,
        metavar="NAME=VALUE",
        help="a coupling of the model, such as lam=-1 or eta=0.2; may be repeated",
    )
    return group


def add_lattice(parser: ArgumentParser) -> None:
    """--model, --set, and the lattice: --L or --shape."""
    group = add_model(parser)
    group.add_argument("--L", type=whole_number, metavar="N", help="linear size of a square lattice")
    group.add_argument(
        "--shape", type=whole_number, nargs="+", metavar="N", help="lengths of any other periodic lattice, such as 6 6 6"
    )


def add_transition(parser: ArgumentParser, *, required: bool = True, where: str = "") -> None:
    """--bracket and --coupling."""
    group = parser.add_argument_group("transition")
    group.add_argument(
        "--bracket",
        type=real_number,
        nargs=2,
        required=required,
        metavar=("LOW", "HIGH"),
        help=f"two values of the coupling with the transition between them{'' if required else ' (default: ' + where + ')'}",
    )
    group.add_argument("--coupling", default="mu2", metavar="NAME", help="the coupling to be found (default: mu2)")


def add_pilot_and_chains(parser: ArgumentParser, where: str = "") -> None:
    """--pilot-particles and --pilot-replicas; --groups, --chains and --sweeps."""
    pilot = parser.add_argument_group(
        f"pilot ladder{where}", "It finds the coupling roughly and guides the chains; it does not enter the error bars."
    )
    pilot.add_argument(
        "--pilot-particles",
        type=whole_number,
        metavar="N",
        help=f"particles in a population (default: {defaults.PILOT_PARTICLES})",
    )
    pilot.add_argument(
        "--pilot-replicas",
        type=whole_number,
        metavar="N",
        help=f"independent populations (default: {defaults.PILOT_REPLICAS})",
    )
    chains = parser.add_argument_group(
        f"multicanonical chains{where}", "They travel between the phases and give the answer."
    )
    chains.add_argument(
        "--groups",
        type=whole_number,
        metavar="N",
        help=f"groups of chains; error bars are a jackknife over all chains (default: {defaults.WALK_GROUPS}, at "
        f"least {defaults.FEWEST_GROUPS})",
    )
    chains.add_argument(
        "--chains", type=whole_number, metavar="N", help=f"chains in each group (default: {defaults.WALK_CHAINS})"
    )
    chains.add_argument(
        "--sweeps",
        type=whole_number,
        metavar="N",
        help=f"sweeps of each chain; the error falls with the square root (default: {defaults.WALK_SWEEPS}, and more while "
        "chains have hardly crossed)",
    )


def add_method(parser: ArgumentParser, where: str = "") -> None:
    """--method and --error: chains that cross, or bridges to both phases."""
    group = parser.add_argument_group(f"method{where}")
    group.add_argument(
        "--method",
        choices=("auto", "crossing", "phases", "both"),
        help="chains that cross from phase to phase, a bridge to each phase from its own Gaussian (for large lattices; no "
        "barrier), or both (default: auto, crossing up to 2048 sites)",
    )
    group.add_argument(
        "--error", type=real_number, metavar="X", help="error of the coupling that bridges reach (default: 0.1 nats)"
    )


def add_old_pilot_names(parser: ArgumentParser) -> None:
    """--particles and --replicas, the old names of --pilot-particles and --pilot-replicas; not shown in the help."""
    parser.add_argument("--particles", type=whole_number, help=SUPPRESS)
    parser.add_argument("--replicas", type=whole_number, help=SUPPRESS)


def add_ladder(
    parser: ArgumentParser,
    particles: int = defaults.LADDER_PARTICLES,
    replicas: int = defaults.LADDER_REPLICAS,
    *,
    where: str = "",
    errors: str = "error bars are a jackknife over them, or come from the genealogy of the particles if there are fewer "
    "than eight",
) -> None:
    """--particles and --replicas."""
    group = parser.add_argument_group(f"ladder{where}")
    group.add_argument(
        "--particles", type=whole_number, metavar="N", help=f"particles in a population (default: {particles})"
    )
    group.add_argument(
        "--replicas",
        type=whole_number,
        metavar="N",
        help=f"independent populations, run side by side; {errors} (default: {replicas})",
    )


def add_run(parser: ArgumentParser, quick: str) -> None:
    """--seed, --softness, --quick (with what it does), and those of several processes."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--seed", type=whole_number, metavar="N", default=0, help="the same seed gives the same numbers (default: 0)"
    )
    group.add_argument(
        "--softness",
        type=real_number,
        metavar="NU",
        help="softness nu of the levels of ladders (default: what the model recommends)",
    )
    group.add_argument("--quick", action="store_true", help=f"a rough answer soon: {quick}")
    several = parser.add_argument_group("several processes", "Start each with the same command except for --process.")
    several.add_argument(
        "--coordinator", metavar="HOST:PORT", help="of the first process; auto on TPU slices and under Slurm"
    )
    several.add_argument("--processes", type=whole_number, metavar="N", help="how many there are")
    several.add_argument("--process", type=whole_number, metavar="N", help="which one this is, from 0")


def add_output(parser: ArgumentParser, *, required: bool = False, plot: bool = True) -> None:
    """--out, --overwrite, --plot and --progress, which used to have an opposite, --silent."""
    group = parser.add_argument_group("output")
    group.add_argument("--out", type=Path, metavar="FILE", required=required, help="netCDF file to write")
    again = "; ladders of the same request are used again, those of another one are set aside" if plot else ""
    group.add_argument("--overwrite", action="store_true", help=f"replace an existing result{again}")
    if plot:
        group.add_argument(
            "--plot",
            type=Path,
            metavar="FILE",
            help="also draw the figure into this file: .png, .pdf or .svg; an existing one is replaced",
        )
        add_style(group)
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show the stage and the time left on standard error, or nothing at all (default: a bar in a terminal, a line a "
        "minute in a log)",
    )
    group.add_argument("--silent", action="store_false", dest="progress", default=None, help=SUPPRESS)


def add_style(parser: Any) -> None:
    """--style."""
    parser.add_argument(
        "--style",
        metavar="NAME",
        help="of the figure: screen, one-column or two-column (widths of a journal), or a style of matplotlib (default: "
        "screen)",
    )


def given(chosen: Namespace, *names: str) -> dict[str, Any]:
    """The seed, and those of these settings that were given; the others keep the defaults of the workflow."""
    found = {name: getattr(chosen, name) for name in (*names, "softness")}
    return {name: value for name, value in found.items() if value is not None} | {"seed": chosen.seed}


def files(chosen: Namespace) -> dict[str, Any]:
    """Where a workflow writes its result, and whether it shows progress."""
    check_picture(chosen.plot, chosen.style)
    return {"out": chosen.out, "overwrite": chosen.overwrite, "progress": chosen.progress}


def couplings(chosen: Namespace) -> dict[str, Any]:
    """The couplings that were given, each once."""
    found = dict(chosen.set)
    if len(found) < len(chosen.set):
        names = [name for name, _ in chosen.set]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"--set {twice} was given {names.count(twice)} times; give every coupling once.")
    return found


def problem(chosen: Namespace) -> Any:
    """The model with all couplings fixed."""
    given_couplings = couplings(chosen)
    if "mu2" not in given_couplings:
        raise ValueError("The model needs a value of mu2: give it as --set mu2=VALUE.")
    from workflows.model_family import family_of  # imports JAX, which the help does without

    mu2 = given_couplings.pop("mu2")
    return family_of(chosen.model, "mu2", given_couplings, chosen.L, chosen.shape).at(mu2)


def check_picture(path: Path | None, style: str | None = None) -> None:
    """Refuse a picture that could not be drawn, before any work is done for it."""
    if style is not None:
        from observables.figure_style import check_style  # matplotlib takes a second to import

        check_style(style)
    if path is None:
        return
    if path.suffix not in PICTURES:
        raise ValueError(f"A picture ends in .png, .pdf or .svg; got {path}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be drawn, because the directory {path.parent} does not exist.")


def whole_number(text: str) -> int:
    """A whole number, as a type of an argument."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a whole number; {text!r} was given") from None


def real_number(text: str) -> float:
    """A number, as a type of an argument."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number; {text!r} was given") from None


def coupling(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        if not name.isidentifier():
            raise ValueError
        return name, float(value)
    except ValueError:
        raise ArgumentTypeError(f"takes a coupling as NAME=VALUE, such as lam=-1; {text!r} was given") from None
