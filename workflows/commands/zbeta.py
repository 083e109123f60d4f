"""`quenchphys zbeta`: the partition function over temperature."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from workflows.commands import Command, Exit, arguments
from workflows.defaults import QUICK_LADDER


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--beta",
        type=arguments.real_number,
        nargs=3,
        default=(0.0, 1.0, 101.0),
        metavar=("FROM", "TO", "NUMBER"),
        help="inverse temperatures, equally spaced (default: 0 1 101)",
    )
    arguments.add_lattice(parser)
    arguments.add_ladder(parser)
    arguments.add_run(parser, f"{QUICK_LADDER['replicas']} x {QUICK_LADDER['particles']} particles")
    arguments.add_output(parser)


def run(chosen: Namespace) -> Exit:
    import numpy as np

    import workflows
    from workflows.commands.output import finish

    low, high, count = chosen.beta
    if not (0 <= low < high and count >= 2 and count == int(count)):
        raise ValueError(f"--beta takes two increasing numbers and how many; got {low:g} {high:g} {count:g}.")
    quick = QUICK_LADDER if chosen.quick else {}
    result = workflows.partition_function(
        arguments.problem(chosen),
        beta=np.linspace(low, high, int(count)),
        **quick | arguments.given(chosen, "particles", "replicas"),
        **arguments.files(chosen),
    )
    return finish(result, chosen)


COMMAND = Command(
    "zbeta",
    "Z(beta), free energy, mean energy and heat capacity from one ladder",
    add_arguments,
    run,
    examples=("zbeta --L 16 --set mu2=2.286 --beta 0 1.2 121 --out zbeta.nc",),
)
