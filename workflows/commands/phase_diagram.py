"""`quenchphys phase-diagram`: the first-order line of phi^6, its critical line, and the tricritical point."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from workflows import defaults
from workflows.commands import Command, Exit, arguments


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--first-order",
        type=arguments.real_number,
        nargs="+",
        metavar="LAM",
        help=f"lam of coexistence points, at least four (default: {_listed(defaults.DIAGRAM_FIRST_ORDER)})",
    )
    parser.add_argument(
        "--critical",
        type=arguments.real_number,
        nargs="+",
        metavar="LAM",
        help="lam of canonical chains, at least three, on both sides of the tricritical point (default: "
        f"{_listed(defaults.DIAGRAM_CRITICAL)})",
    )
    parser.add_argument(
        "--L",
        type=arguments.whole_number,
        metavar="N",
        help=f"size of the lattices of coexistence points (default: {defaults.DIAGRAM_L})",
    )
    parser.add_argument(
        "--sizes",
        type=arguments.whole_number,
        nargs="+",
        metavar="L",
        help=f"sizes of the lattices of canonical chains, at least three (default: {_listed(defaults.DIAGRAM_SIZES)})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=arguments.coupling,
        metavar="NAME=VALUE",
        help="eta, stiffness or m0_sq; may be repeated",
    )
    for name, default in (
        ("groups", defaults.WALK_GROUPS), ("chains", defaults.WALK_CHAINS), ("sweeps", defaults.DIAGRAM_SWEEPS)
    ):  # fmt: skip
        parser.add_argument(
            f"--{name}", type=arguments.whole_number, metavar="N", help=f"of all chains (default: {default})"
        )
    parser.add_argument(
        "--seed",
        type=arguments.whole_number,
        metavar="N",
        default=0,
        help="the same seed gives the same numbers (default: 0)",
    )
    arguments.add_output(parser)


def _listed(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)


def run(chosen: Namespace) -> Exit:
    import workflows
    from workflows.commands.output import finish

    names = ("first_order", "critical", "L", "sizes", "groups", "chains", "sweeps", "seed")
    given = {name: value for name in names if (value := getattr(chosen, name)) is not None}
    result = workflows.phase_diagram(**given, **arguments.files(chosen), **arguments.couplings(chosen))
    return finish(result, chosen)


COMMAND = Command(
    "phase-diagram",
    "Follow the first-order line of phi^6 to the tricritical point",
    add_arguments,
    run,
    "Coexistence points from one side, canonical chains of several sizes across it; both ways give the tricritical lam.  "
    "Finished points and chains are not run again.",
    ("phase-diagram --out diagram.nc --plot diagram.png",),
)
