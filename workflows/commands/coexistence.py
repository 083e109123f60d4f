"""`quenchphys coexistence`: the coupling at which two phases have the same weight."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from workflows.commands import Command, Exit, arguments
from workflows.defaults import QUICK_WALK, WALK_SWEEPS


def add_arguments(parser: ArgumentParser) -> None:
    arguments.add_lattice(parser)
    arguments.add_transition(parser, required=False, where="from mean field and the pilot, for mu2 of a named model")
    arguments.add_method(parser)
    arguments.add_pilot_and_chains(parser)
    arguments.add_old_pilot_names(parser)
    arguments.add_run(parser, f"{QUICK_WALK['sweeps']} sweeps instead of {WALK_SWEEPS}")
    arguments.add_output(parser)


def run(chosen: Namespace) -> Exit:
    import workflows
    from workflows.commands.output import finish

    quick = QUICK_WALK if chosen.quick and chosen.method != "phases" else {}
    names = ("pilot_particles", "pilot_replicas", "groups", "chains", "sweeps", "method", "error", "particles", "replicas")
    result = workflows.coexistence(
        L=chosen.L,
        shape=chosen.shape,
        bracket=None if chosen.bracket is None else tuple(chosen.bracket),
        model=chosen.model,
        coupling=chosen.coupling,
        **quick | arguments.given(chosen, *names),
        **arguments.files(chosen),
        **arguments.couplings(chosen),
    )
    return finish(result, chosen)


COMMAND = Command(
    "coexistence",
    "Find the coupling at which two phases have the same weight",
    add_arguments,
    run,
    "A pilot ladder finds it, multicanonical chains between the two phases measure it: the coupling by equal weight and by "
    "equal height, averages in both phases, the barrier between them, P(q), P(m) and P(E).  On large lattices, where "
    "nothing crosses, a bridge to each phase from its own side finds it without the barrier.",
    ("coexistence --L 16 --out run.nc --plot run.png", "coexistence --L 128 --error 1e-5 --out large.nc"),
)
