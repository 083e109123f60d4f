"""`quenchphys fss`: finite-size scaling of a transition."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from workflows.commands import Command, Exit, arguments
from workflows.defaults import QUICK_LADDER, QUICK_WALK


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sizes",
        type=arguments.whole_number,
        nargs="+",
        required=True,
        metavar="L",
        help="linear sizes, at least three",
    )
    parser.add_argument(
        "--order", choices=("first", "second"), help="order of the transition (default: from mean field)"
    )
    parser.add_argument(
        "--aspect",
        type=arguments.whole_number,
        metavar="A",
        help="lattices of L x A L; 4 is good for the interface tension (default: 1)",
    )
    arguments.add_model(parser)
    arguments.add_transition(parser)
    arguments.add_method(parser, " (first order)")
    arguments.add_pilot_and_chains(parser, " (first order; chains also second order)")
    where = " (second order, models without sign clusters)"
    arguments.add_ladder(parser, where=where, errors="error bars are a jackknife over them")
    parser.add_argument(
        "--omega", type=float, metavar="W", help="exponent of corrections to scaling, if known (second order)"
    )
    parser.add_argument(
        "--universality",
        metavar="CLASS",
        help='universality class, if known ("ising"): its critical ratios are not fitted then (second order)',
    )
    arguments.add_run(
        parser,
        f"{QUICK_WALK['sweeps']} sweeps, or {QUICK_LADDER['replicas']} x {QUICK_LADDER['particles']} particles (second "
        "order, models without sign clusters)",
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="scheduler of a cluster whose workers run the sizes, such as tcp://head:8786"
    )
    arguments.add_output(parser)


def run(chosen: Namespace) -> Exit:
    import workflows
    from workflows.cluster import connect
    from workflows.commands.output import finish

    chains = ("pilot_particles", "pilot_replicas", "groups", "chains", "sweeps", "method", "error")
    names = (*chains, "particles", "replicas", "omega", "universality", "aspect")
    result = workflows.finite_size_scaling(
        sizes=chosen.sizes,
        bracket=tuple(chosen.bracket),
        model=chosen.model,
        coupling=chosen.coupling,
        order=chosen.order,
        client=connect(chosen.dask),
        **_quick(chosen) | arguments.given(chosen, *names),
        **arguments.files(chosen),
        **arguments.couplings(chosen),
    )
    return finish(result, chosen)


def _quick(chosen: Namespace) -> dict[str, int]:
    """Fewer sweeps or smaller ladders, whichever the transition needs."""
    if not chosen.quick:
        return {}
    from workflows.model_family import check_bracket, family_of
    from workflows.scaling.critical_sampling import has_clusters
    from workflows.scaling.finite_size import check_sizes, order_of

    family = family_of(chosen.model, chosen.coupling, arguments.couplings(chosen), L=check_sizes(chosen.sizes)[0])
    bracket = check_bracket(chosen.bracket, chosen.coupling)
    order = chosen.order or order_of(family, bracket)
    return QUICK_WALK if order == "first" or has_clusters(family.at(bracket[0])) else QUICK_LADDER


COMMAND = Command(
    "fss",
    "Follow a transition over several sizes to the infinite lattice",
    add_arguments,
    run,
    "First order: coexistence points and barriers.  Second order: Binder cumulants and exponents.  A finished size is not "
    "run again.",
    (
        "fss --sizes 8 12 16 24 --bracket 2.25 2.33 --out fss.nc",
        "fss --model phi4 --set lam=0.25 --sizes 8 16 32 --bracket -1.32 -1.22 --out critical.nc",
    ),
)
