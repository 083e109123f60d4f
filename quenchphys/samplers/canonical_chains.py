"""Canonical chains: local trajectories and sign clusters at one coupling, for second-order transitions.

Chains of the density pi(x) exp(-U(x)) need no weight: at a continuous transition there is no barrier, only the slowing down
of long waves, tau ~ L^z with z about 2 for local moves.  Between trajectories on the sites (`BlockHMC`), which move |phi|,
the signs are moved by clusters (`SignClusters`): z falls to a few tenths (`benchmarks/speed/critical_slowing.py`).

The result is a walk whose weight is w(U) = exp(-U).  Walks at several couplings are joined by `observables.Pool`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from quenchphys.consistency import check, check_program
from quenchphys.console.interruption import Interrupted, interruptible_alone
from quenchphys.console.progress import Meter, shown
from quenchphys.console.progress import meter as progress_meter
from quenchphys.kernels.block_hmc import BlockHMC, Chances
from quenchphys.kernels.sign_clusters import SignClusters
from quenchphys.labels import check_labels
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.processes import any_of, to_host
from quenchphys.parallel.random_numbers import key_of, split
from quenchphys.problem import Problem, ProblemView, view
from quenchphys.samplers.multicanonical_chains import SWEEPS, checked_start, show
from quenchphys.settings import check_seed, check_whole
from quenchphys.smc.loop import contained
from quenchphys.storage.attributes import kernel_as_json, problem_attributes, software_attributes
from quenchphys.storage.schema import WALK_FORMAT
from quenchphys.walk import OWN_VARIABLES, Walk

Array = jax.Array

LANES = 8  # chains side by side in one tile
DRAWS = 64  # exact draws from the prior, for each group
# With clusters short trajectories suffice: they only have to move |phi| (`benchmarks/speed/critical_slowing.py`).
SHORT = BlockHMC(steps=8, target_acceptance=0.8)
FIRST_STEP = 0.2
TUNING_GAIN = 0.3
LOCAL = ("lane_action", "lane_force", "lane_energy", "lane_inside", "lane_observe", "blocks")
SIGNED = ("lane_sign_couplings", "lane_lowest")


class Seen(NamedTuple):
    """What is recorded of a sweep: (lane,), and the acceptance of the tile."""

    energy: Array
    observables: dict[str, Array]
    acceptance: Array


class Programs:
    """Compiled once for the shapes; seed and couplings are arguments."""

    def __init__(self, kernel: BlockHMC, clusters: bool, mesh: Mesh):
        own, all_of_it = PartitionSpec("replica"), PartitionSpec()

        def spread(function: Any, ins: tuple, outs: Any) -> Any:
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False))

        def sweep(problem: ProblemView, chances: tuple[Chances, Array], x: Array, step: Array, tune: Array) -> tuple:
            moving, flipping = chances
            moved = kernel.transition(problem.problem, moving, x, jnp.float32(1.0), step, kernel.steps)  # type: ignore[arg-type]
            x = SignClusters().transition(problem.problem, flipping, moved.x) if clusters else moved.x  # type: ignore[arg-type]
            x = jax.lax.optimization_barrier(x)  # not computed again for every observable
            better = step * jnp.exp(TUNING_GAIN * (moved.acceptance - kernel.target_acceptance))
            energy = problem.problem.lane_energy(x)  # type: ignore[attr-defined]
            seen = Seen(energy, problem.problem.lane_observe(x), moved.acceptance)  # type: ignore[attr-defined]
            return (x, jnp.where(tune, better, step)), seen

        def run(problem: ProblemView, keys: Array, x: Array, step: Array, tune: Array) -> tuple:
            def tile(row: tuple) -> tuple:
                key, x, step = row
                moving, flipping = split(key)
                chances = kernel.chances(problem.problem, moving, SWEEPS, LANES), split(flipping, SWEEPS)  # type: ignore[arg-type]
                last, seen = jax.lax.scan(  # type: ignore[var-annotated]
                    lambda carry, now: sweep(problem, now, *carry, tune), (x, step), chances
                )
                return *last, seen

            return map_rows(tile, (keys, x, step))

        def begin(problem: ProblemView, key: Array, count: int) -> tuple[Array, Array]:
            x = problem.sample_prior(key, count)
            return x, problem.problem.lane_energy(jnp.moveaxis(x, 0, -1))  # type: ignore[attr-defined]

        self.begin = jax.jit(begin, static_argnums=2)
        self.run = spread(run, (all_of_it, own, own, own, all_of_it), (own, own, own))


@cache
def programs(kernel: BlockHMC, clusters: bool, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(kernel, clusters, mesh)


def canonical(
    problem: Problem,
    start: np.ndarray | Walk | None = None,
    *,
    sweeps: int,
    groups: int = 16,
    chains: int = 8,
    warm_up: int = 96,
    clusters: bool = True,
    kernel: BlockHMC | None = None,
    seed: int = 0,
    progress: bool | Meter | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Walk:
    """Run chains of the density pi(x) exp(-U(x)), with trajectories on the sites and clusters of signs in turns.

    Parameters
    ----------
    problem
        A field with a local action and an even potential, such as `lattices.phi4`, on any lattice.
    start
        Configurations (group, chain, ...).  Or a canonical `Walk` to continue: its chains keep their step size, and there is
        no burn-in.  Default: draws from the prior.
    sweeps, warm_up
        Sweeps that are recorded, and sweeps of burn-in before them, in which the step size is tuned.  A sweep is one
        trajectory and one move of all clusters; both numbers are rounded up to a multiple of 16.
    groups, chains
        Independent groups, over which error bars are a jackknife, and chains in each.  Their product must be a multiple of
        8, which run side by side.
    clusters
        Whether signs are moved by clusters.
    kernel
        Trajectories between them.  Default: short ones, `BlockHMC(steps=8)`.
    seed, progress, devices
        As in `quench`; chains are shared out among devices.

    Returns
    -------
    Walk
        Energy and every observable of every sweep, with log w = -U.  `observables.Pool` joins walks at several couplings.

    Examples
    --------
    >>> models = [lattices.phi4(L=32, mu2=mu2, lam=0.25) for mu2 in (-1.29, -1.27, -1.25)]
    >>> walks = [qp.canonical(model, sweeps=800, seed=seed) for seed, model in enumerate(models)]
    >>> observables.binder(walks, mu2=np.linspace(-1.29, -1.25, 9))
    """
    check_not_forked()
    kernel = SHORT if kernel is None else kernel
    if not isinstance(kernel, BlockHMC):
        raise TypeError(f"kernel must be a BlockHMC, which moves on the sites; {kernel!r} was given")
    if not isinstance(clusters, bool):
        raise TypeError(f"clusters must be True or False; {clusters!r} was given")
    sweeps, warm_up, seed = check_whole("sweeps", sweeps, 1), check_whole("warm_up", warm_up, 0), check_seed(seed)
    _check_field(problem, clusters)
    begun = time.monotonic()
    check(problem)
    with own_settings():
        model = view(problem)
        check_labels(model, OWN_VARIABLES - {"energy", "<observable>"})
    before = start if isinstance(start, Walk) else None
    if before is not None and before.attrs.get("method") != "canonical":
        raise ValueError(f"only a canonical walk can be continued; one by {before.attrs.get('method')!r} was given")
    first = None if start is None else checked_start(start.last if isinstance(start, Walk) else start, model.shape)
    groups, chains = (groups, chains) if first is None else first.shape[:2]
    tiles = _tiles(check_whole("groups", groups, 2), check_whole("chains", chains, 1))
    mesh = mesh_for(tiles, 1, devices)
    recorded, discarded = math.ceil(sweeps / SWEEPS), 0 if before else math.ceil(warm_up / SWEEPS)  # device calls
    meter = progress_meter("canonical", progress)
    with contained(mesh), interruptible_alone() as request, shown(meter):
        program, argument = programs(kernel, clusters, mesh), model.as_argument()
        draws, prior_energy = to_host(program.begin(argument, split(key_of(seed))[0], groups * (DRAWS + chains)))
        check_program(model, draws, {"energy": prior_energy})
        if first is None:
            first = draws[groups * DRAWS :].reshape(groups, chains, *model.shape)
        # (group, chain, ...) -> (tile, ..., lane), groups one after the other
        x: Any = np.moveaxis(first.reshape(tiles, LANES, *model.shape), 1, -1)
        step: Any = np.full(tiles, FIRST_STEP, np.float32)
        if before is not None:
            step = np.repeat(before.data["step_size"].values, chains).reshape(tiles, LANES).mean(axis=1)
        blocks: list[Any] = []
        for call in range(discarded + recorded):
            keys = split(jax.random.fold_in(split(key_of(seed))[1], call), tiles)
            x, step, seen = program.run(argument, keys, x, step, np.bool_(call < discarded))
            if call >= discarded:
                blocks.append((_by_sweep(to_host(seen), groups, chains),))
                show(meter, blocks, recorded)
            if any_of(bool(request)):
                done = SWEEPS * len(blocks)
                raise Interrupted(f"Interrupted after {done} sweeps; nothing is kept of an unfinished walk.")
        last, step_size = to_host((x, step))
    data = _samples([seen for (seen,) in blocks], prior_energy[: groups * DRAWS].reshape(groups, DRAWS))
    data = data.assign(
        last=(
            ("group", "chain", *model.dims),
            np.moveaxis(last, -1, 1).reshape(groups, chains, *model.shape),
            {"long_name": "configuration after the last sweep"},
        ),
        step_size=("group", np.repeat(step_size, LANES).reshape(groups, chains).mean(axis=1)),
        scale=(("group", "coordinate"), np.ones((groups, math.prod(model.shape)), np.float32)),
    )
    settings = {
        "groups": groups,
        "chains": chains,
        "sweeps": SWEEPS * recorded,
        "warm_up": SWEEPS * discarded,
        "clusters": clusters,
        "kernel": kernel_as_json(kernel),  # type: ignore[arg-type]
    }
    trajectories = SWEEPS * (recorded + discarded) * groups * chains
    return Walk(
        data.assign_attrs(
            {
                "format": WALK_FORMAT,
                "method": "canonical",
                **problem_attributes(model),
                "settings": json.dumps(settings),
                "seed": seed,
                "gradients": float(trajectories * kernel.gradients()),
                "undefined": 0.0,  # a trajectory that ends there is rejected, and no sample has such an energy
                "wall_time": time.monotonic() - begun,
                **software_attributes(),
            }
        )
    )


def _check_field(problem: Any, clusters: bool) -> None:
    for name in LOCAL + SIGNED * clusters:
        if not hasattr(problem, name):
            raise TypeError(
                f"canonical chains need a field with a local action, such as lattices.phi4(L=32, mu2=-1.27, lam=0.25)"
                f"{', and clusters need signs that links couple' if name in SIGNED else ''}; this {type(problem).__name__} "
                f"has no {name}"
            )


def _tiles(groups: int, chains: int) -> int:
    if groups * chains % LANES:
        raise ValueError(
            f"groups * chains must be a multiple of {LANES}, which run side by side; {groups} * {chains} was given"
        )
    return groups * chains // LANES


def _by_sweep(seen: Any, groups: int, chains: int) -> Seen:
    """(tile, sweep, lane) -> (sweep, group, chain), and the acceptance (sweep, tile)."""

    def sorted_out(value: np.ndarray) -> Any:
        return np.moveaxis(value, 1, 0).reshape(value.shape[1], groups, chains)

    observables = {name: sorted_out(value) for name, value in seen.observables.items()}
    return Seen(sorted_out(seen.energy), observables, np.moveaxis(seen.acceptance, 1, 0))


def _samples(blocks: list[Seen], prior_energy: np.ndarray) -> xr.Dataset:
    """What the chains recorded, and log w = -U at the samples and at exact draws from the prior."""
    seen = jax.tree.map(lambda *parts: np.concatenate(parts), *blocks)
    dims = ("group", "sweep", "chain")
    values = {"energy": seen.energy, **seen.observables}
    found = xr.Dataset({name: (dims, np.moveaxis(np.asarray(value), 0, 1)) for name, value in values.items()})
    energy = found["energy"].values.astype(float)
    if not np.isfinite(energy).all():
        raise FloatingPointError("the energy of some samples is not a number, so that nothing can be said of them")
    ends = np.linspace(energy.min(), energy.max(), 4)
    groups = energy.shape[0]
    acceptance = seen.acceptance.mean(axis=0)
    return found.assign(
        log_w=(dims, -energy),
        prior_log_w=(("group", "draw"), np.where(np.isfinite(prior_energy), -prior_energy.astype(float), -np.inf)),
        acceptance=("group", np.full(groups, acceptance.mean(), np.float32)),
        weight_energy=("node", ends),
        weight_log=("node", -ends),
    )
