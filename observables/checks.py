"""Diagnostics of a ladder: effective samples, lineages, phases along the levels, and disagreement of replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import Estimate, estimate
from observables.estimation.genealogy import Genealogy
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.level_quadrature import quadrature
from observables.numbers import number
from observables.samples.pool import Pool, Source
from observables.thermal import log_z_of
from quenchphys.ladder import Ladder
from quenchphys.walk import Walk

Array = np.ndarray

# A single ladder does not know its error beyond these: chosen with one seed of `benchmarks.accuracy.error_ratio`, tested
# with another.
MOST_OF_Z = 0.5  # one family with a larger share decides alone
FEWEST_FAMILIES = 10.0  # effective ones
FEW_PER_PARTICLE = 1 / 3  # of them, below which lineages, and not single particles, decide ...
HEAVY_TAIL = 1.7  # ... and the inequality of their shares counts: 1.5 for families that merely drift


def diagnostics(ladder: Source, beta: float = 1.0) -> xr.Dataset:
    """The quality of a ladder, replica by replica, for the target exp(-beta U).

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        The ladders.
    beta : float
        Inverse temperature of the target.

    Returns
    -------
    Dataset
        With the variables below.

    Notes
    -----
    ess                  effective samples, (sum W)^2 / sum W^2 over prior draws and all levels
    ess_per_gradient     the same per gradient evaluation; ess_per_evaluation per energy, for nested ladders
    level_share          share of the target's weight on each level; prior_share on the prior draws
    rungs                number of levels that carry weight, (sum of shares)^2 / sum of squared shares
    lineages             distinct ancestors among the prior draws, at the last level
    occupancy            weight of each phase in the population of each level
    log_z                of each replica by itself; log_z_quadrature by the textbook route
    volume_shift         log G of the last level: self-consistent (WHAM) minus telescoped
    replica_spread       standard deviation of log Z over replicas; genealogy_error what their genealogies predict
    largest_family       largest share of Z that descends from one particle (some levels back), if there is one replica
    particles            how many there are at each level; the same
    families             effective number of families of particles that Z descends from, where it is smallest; the same
    family_tail          how unequal their shares of Z are, sum s^3/(sum s^2)^2; 3/2 if they merely drift; the same

    Examples
    --------
    >>> found = observables.diagnostics(ladder)
    >>> found.ess.sum(), found.replica_spread, found.genealogy_error
    """
    pool = Pool.of_levels(ladder, "A diagnosis")
    return _diagnosis(estimate(pool, Targets.grid(pool, beta, {}), no_moments, check=False), beta)


def _diagnosis(found: Estimate, beta: float, families: Genealogy | None = None) -> xr.Dataset:
    """The diagnostics of an estimate of log Z at one beta, and its genealogy, if that was read before."""
    pool, targets, replicas = found.pool, found.targets, found.pool.replicas
    longest = max(len(replica.level) for replica in replicas)
    share = np.full((len(replicas), longest), np.nan)
    columns: dict[str, list[float]] = {name: [] for name in ("ess", "prior_share", "rungs", "lineages", "volume_shift")}
    lineages = _recorded_lineages(pool)
    bases = (base for _, base in pool.weighted)
    for r, (replica, base) in enumerate(zip(replicas, bases, strict=True)):
        log_w = base + targets.log_t(np.nan_to_num(replica.energy_at(dict(targets.rest))), beta)
        weight = np.exp(log_w - log_w.max())
        weight /= weight.sum()
        count = len(replica.level)
        share[r, :count] = weight[replica.draws :].reshape(replica.shape).sum(axis=1)
        columns["ess"].append(1 / np.sum(weight**2))
        columns["prior_share"].append(weight[: replica.draws].sum())
        columns["rungs"].append(np.sum(share[r, :count]) ** 2 / np.sum(share[r, :count] ** 2))
        columns["lineages"].append(_surviving(replica.parent) if replica.live is None else lineages[r])
        columns["volume_shift"].append(float((replica.log_volume - replica.telescoped)[-1]))
    result = xr.Dataset({name: ("replica", values) for name, values in columns.items()})
    result["level_share"] = (("replica", "level"), share)
    result["log_z"] = ("replica", found.log_z[:, 0] if len(pool.ladders) == 1 else _alone(pool, beta))
    if all(replica.softness is not None for replica in replicas) and beta > 0:
        result["log_z_quadrature"] = ("replica", quadrature(pool, beta)["log_z"].values[:, 0])
    gradients = _gradients(pool)
    if gradients is not None:
        result["ess_per_gradient"] = ("replica", result["ess"].values / gradients)
    if all("evaluations" in ladder.levels for ladder in pool.ladders):
        counts = [ladder.levels["evaluations"].clip(min=0).sum("level").values for ladder in pool.ladders]
        result["ess_per_evaluation"] = ("replica", result["ess"].values / np.concatenate(counts))
    if pool.run.phases:
        result = result.merge(_occupancy(pool, longest))
    result["replica_spread"] = float(np.std(found.log_z[:, 0], ddof=1)) if len(found.log_z) > 1 else np.nan
    if all(replica.parent is not None or replica.live is not None for replica in replicas):
        uncertain = Uncertain(found, "genealogy", families)
        error = float(uncertain.of(lambda log_z, mean: log_z).error[0])
        result["genealogy_error"] = error * np.sqrt(len(found.log_z))
        if len(found.log_z) == 1 and uncertain.families is not None and replicas[0].live is None:
            result["particles"] = replicas[0].shape[1]
            result["largest_family"] = float(uncertain.families.largest[0])
            result["families"] = float(uncertain.families.families[0])
            result["family_tail"] = float(uncertain.families.tail[0])
    return result.assign_coords(beta=beta).assign_attrs(pool.attrs)


def _alone(pool: Pool, beta: float) -> Array:
    values = []
    for one in pool.ladders:
        alone = Pool(one, pool.volumes)
        values.append(estimate(alone, Targets.grid(alone, beta, {}), no_moments, check=False).log_z[:, 0])
    return np.concatenate(values)


def _surviving(parent: Array | None) -> float:
    """Distinct prior draws from which the last population descends."""
    if parent is None:
        return np.nan
    ancestor = np.arange(parent.shape[1])
    for generation in parent[::-1]:
        ancestor = generation[ancestor]
    return float(len(np.unique(ancestor)))


def _recorded_lineages(pool: Pool) -> list[float]:
    """Ancestors of the last level of every replica, as the run counted them; NaN if it did not."""
    found = []
    for ladder in pool.ladders:
        for r in range(ladder.levels.sizes["replica"]):
            last = int(ladder.levels["level_count"][r]) - 1 if "level_count" in ladder.levels else -1
            found.append(float(ladder.levels["lineages"][r, last]) if "lineages" in ladder.levels else np.nan)
    return found


def _gradients(pool: Pool) -> Array | None:
    """Gradient evaluations of each replica."""
    per_replica = []
    for ladder in pool.ladders:
        if "gradients_per_level" not in ladder.attrs:
            return None
        particles = ladder.particles.sizes["particle"]
        per_replica.append(ladder.levels["level_count"].values * float(ladder.attrs["gradients_per_level"]) * particles)
    return np.concatenate(per_replica)


def _occupancy(pool: Pool, longest: int) -> xr.Dataset:
    phases = pool.run.phases
    occupancy = np.full((len(pool.replicas), longest, len(phases)), np.nan)
    for r, replica in enumerate(pool.replicas):
        weight = np.nan_to_num(np.exp(replica.log_weight.astype(float)))
        for p, (observable, low, high) in enumerate(phases.values()):
            value = replica.particle_observables[observable]
            occupancy[r, : len(weight), p] = (weight * ((value >= low) & (value < high))).sum(axis=1)
    return xr.Dataset({"occupancy": (("replica", "level", "phase"), occupancy)}, coords={"phase": list(phases)})


def report(source: Source, beta: float = 1.0) -> str:
    """How a run ended, what log Z is, and the diagnostics, in words; the same text as that of `ladder.report()`.

    Parameters
    ----------
    source : Ladder, Walk, several of them, or Pool
        The runs.
    beta : float
        Inverse temperature of the target exp(-beta U).

    Returns
    -------
    str
        Some lines; print them.

    Examples
    --------
    >>> print(observables.report(ladder))
    """
    if isinstance(source, Ladder | Walk):
        return source.report(beta)
    return "\n".join(findings(Pool.of(source), beta))


def findings(pool: Pool, beta: float) -> list[str]:
    """log Z with its error, and for ladders the diagnostics; why there is none, if it cannot be given."""
    try:
        uncertain = Uncertain(estimate(pool, Targets.grid(pool, beta, {}), no_moments))
        answer = log_z_of(uncertain)
        lines = [f"log Z = {number(float(answer.log_z), float(answer.log_z_err))} at beta = {beta:g}"]
        if pool.of_ladders:
            lines += in_words(pool, _diagnosis(uncertain.found, beta, uncertain.families), beta).splitlines()
        return lines
    except (ValueError, RuntimeError, ArithmeticError) as cause:
        return [f"log Z at beta = {beta:g} cannot be given: {str(cause).splitlines()[0]}"]


def in_words(pool: Pool, found: xr.Dataset, beta: float) -> str:
    """Diagnostics as sentences, and a warning for each sign that the answers may be wrong."""
    first = pool.ladders[0]
    kind = {"quench": "quenched", "temper": "tempered"}.get(first.method, first.method)
    counts = [len(replica.level) for replica in pool.replicas]
    several = [
        f"{first.problem}: {len(pool.ladders)} {kind} ladders, {_several(len(pool.replicas), 'replica')} of "
        f"{_range(counts)} levels and {pool.replicas[0].shape[1]} particles.",
    ]
    lines = [
        *(several if len(pool.ladders) > 1 else []),
        f"At beta = {beta:g} it has {found['ess'].sum().item():.0f} effective samples, spread over "
        f"{_range(found['rungs'].values)} levels a replica; the prior draws carry "
        f"{found['prior_share'].mean().item():.1%} of the weight.",
    ]
    if "ess_per_gradient" in found:
        lines.append(
            f"That is {1e6 * found['ess_per_gradient'].mean().item():.0f} effective samples per million gradients."
        )
    if "ess_per_evaluation" in found:
        lines.append(
            f"That is {1e6 * found['ess_per_evaluation'].mean().item():.0f} effective samples per million energies."
        )
    lines.append(f"{_range(found['lineages'].values)} of the prior draws have descendants at the last level.")
    lines += _words_on_agreement(found)
    if "acceptance" in first.levels:
        acceptance = first.levels["acceptance"]
        lines.append(f"Acceptance: {float(acceptance.mean()):.2f} on average, {float(acceptance.min()):.2f} at least.")
    if "occupancy" in found:
        for phase in found["phase"].values:
            occupancy = found["occupancy"].sel(phase=phase)
            lines.append(
                f"Phase {phase}: at most {float(occupancy.max('level').min()):.2f} of a population in every replica."
            )
    lines += _warnings(pool, found)
    return "\n".join(lines)


def _words_on_agreement(found: xr.Dataset) -> list[str]:
    log_z = found["log_z"].values
    lines = [
        f"log Z of replicas scatters by {np.std(log_z, ddof=1):.3f}" if len(log_z) > 1 else "There is one replica"
    ]
    if "genealogy_error" in found:
        lines[0] += f"; the genealogy of one replica predicts {found['genealogy_error'].item():.3f}"
    lines[0] += "."
    if "families" in found:
        lines.append(
            "Its error does not contain what rare lineages that it did not find would add; the scatter of several does."
        )
    if "log_z_quadrature" in found:
        shift = float((found["log_z_quadrature"] - found["log_z"]).mean())
        lines.append(f"Quadrature over the level volumes gives log Z {shift:+.3f} from this.")
    moved = float(found["volume_shift"].mean())
    lines.append(f"Self-consistent volumes move log G of the last level by {moved:+.3f} (WHAM minus telescoped).")
    return lines


def _warnings(pool: Pool, found: xr.Dataset) -> list[str]:
    lines = []
    if not all(ladder.outcome.trusted for ladder in pool.ladders):
        lines.append("WARNING: the ladder did not end as it should; its answers may be wrong.")
    spread, predicted = found["replica_spread"].item(), found.get("genealogy_error")
    if predicted is not None and spread > 2 * predicted.item():
        lines.append(
            "WARNING: replicas disagree more than their genealogies explain: the levels were not in equilibrium."
        )
    if found["lineages"].min().item() < 5:
        lines.append("WARNING: fewer than 5 lineages survive; use more particles or more mutation.")
    if few := few_lineages(found):
        lines.append("WARNING: " + few)
    expected = found.get("genealogy_error")
    if expected is not None and abs(found["volume_shift"].mean().item()) > 3 * max(expected.item(), 1e-3):
        lines.append("WARNING: the self-consistent volumes contradict the telescoped ones.")
    return lines


def few_lineages(found: xr.Dataset) -> str | None:
    """Why a single replica of these diagnostics does not know its error, if few particles decide; else None.

    Few families, or families whose shares of Z have a heavy tail: then lineages found a rare phase, and one that was missed
    would have changed the answer by more than those that were met can tell.
    """
    if "largest_family" not in found:
        return None
    largest, families, tail = (found[name].item() for name in ("largest_family", "families", "family_tail"))
    if largest > MOST_OF_Z:
        return (
            f"{largest:.0%} of Z descends from one particle; the errors of a single replica with so few lineages are not "
            "reliable: run several replicas."
        )
    if families < FEWEST_FAMILIES or (families < FEW_PER_PARTICLE * found["particles"].item() and tail > HEAVY_TAIL):
        return (
            f"Z descends from {families:.0f} effective families of particles, and some are far larger than others; a "
            "single replica cannot know whether it missed another such family, and its errors may be too small: run "
            "several replicas."
        )
    return None


def _several(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _range(values: Any) -> str:
    low, high = (f"{round(float(v))}" for v in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"
