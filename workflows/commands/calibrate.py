"""`quenchphys calibrate`: are the stated errors right?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from workflows.commands import Command, Exit, arguments
from workflows.defaults import TARGET_NAMES

FEW, SMALL = 16, {"particles": 100}  # what --quick means


def add_arguments(parser: ArgumentParser) -> None:
    arguments.add_lattice(parser)
    target = parser.add_argument_group("target", "A problem with exact answers, instead of a lattice model.")
    target.add_argument("--target", choices=TARGET_NAMES, help="its name")
    target.add_argument("--dim", type=arguments.whole_number, default=10, metavar="D", help="its dimension (default: 10)")
    parser.add_argument("--seeds", type=arguments.whole_number, metavar="N", help="how many runs, at least 8 (default: 64)")
    parser.add_argument("--beta", type=arguments.real_number, default=1.0, help="inverse temperature (default: 1)")
    arguments.add_ladder(parser, 200, 4)
    arguments.add_run(parser, f"{FEW} seeds, {SMALL['particles']} particles")
    arguments.add_output(parser)


def run(chosen: Namespace) -> Exit:
    import quenchphys as qp
    import workflows
    from workflows.commands.output import finish

    problem: Any = getattr(qp.targets, chosen.target)(chosen.dim) if chosen.target else arguments.problem(chosen)
    quick = SMALL | {"seeds": FEW} if chosen.quick else {}
    result = workflows.calibrate(
        problem,
        beta=chosen.beta,
        **quick | arguments.given(chosen, "particles", "replicas", "seeds"),
        **arguments.files(chosen),
    )
    return finish(result, chosen)


COMMAND = Command(
    "calibrate",
    "Test the error bars: z-scores of one small problem from many seeds",
    add_arguments,
    run,
    examples=("calibrate --target spike_slab --dim 10 --seeds 64", "calibrate --L 4 --set mu2=2.3 --plot z.png"),
)
