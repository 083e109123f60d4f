"""Do the tests notice?  Break one line of the engine at a time, in a copy, and see that its test fails.

    python tests/sabotage.py            # all of them; takes a few minutes
    python tests/sabotage.py metropolis # those whose name contains a word

A row that says "NOT NOTICED" is a test that proves nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Break(NamedTuple):
    name: str
    file: str
    line: str
    broken: str
    test: str


BREAKS = [
    Break(
        "order statistics begin one point too low",
        "quenchphys/samplers/nested_births.py",
        "np.arange(live - replaced + 1, live + 1, dtype=float)",
        "np.arange(live - replaced, live, dtype=float)",
        "tests/quenchphys/samplers/test_nested_slices.py -k order_statistics",
    ),
    Break(
        "a larger compression leaves the shell above its wall as it was",
        "observables/estimation/shells.py",
        "return below - sums[:-1] * kept[:, None, None]",
        "return below",
        "tests/quenchphys/samplers/test_nested_slices.py -k one_replica_predicts",
    ),
    Break(
        "births may lie above their wall",
        "quenchphys/samplers/nested_births.py",
        "parameter=-wall,",
        "parameter=-dead.loglikelihood.min(),",
        "tests/quenchphys/samplers/test_nested_slices.py -k walls_enclose",
    ),
    Break(
        "chains forget the temperature",
        "quenchphys/samplers/gradient_kernels.py",
        "model.log_prior(x) - beta * model.energy(x)",
        "model.log_prior(x) - model.energy(x)",
        "tests/quenchphys/samplers/test_gradient_chains.py -k another_temperature",
    ),
    Break(
        "a chain counts its first phase as another",
        "quenchphys/samplers/gradient_chains.py",
        "elsewhere[np.arange(len(inside)), :, first] = False",
        "elsewhere[np.arange(len(inside)), :, first] = True",
        "tests/quenchphys/samplers/test_gradient_chains.py -k cannot_leave",
    ),
    Break(
        "the Gauss-Newton curvature forgets the loss",
        "quenchphys/samplers/posterior_mode.py",
        "return back(jax.jvp(jax.grad(loss), (outputs,), (moved,))[1])[0]",
        "return back(moved)[0]",
        "tests/quenchphys/samplers/test_laplace_approximation.py -k linear_regression",
    ),
    Break(
        "the prior of a Laplace approximation is not normalised",
        "quenchphys/samplers/posterior_mode.py",
        "constant = 0.5 * self.log_determinant - 0.5 * len(self.mean) * np.log(2 * np.pi)",
        "constant = 0.0",
        "tests/quenchphys/samplers/test_laplace_approximation.py -k linear_regression",
    ),
    Break(
        "a block counts the links of its neighbour",
        "lattices/torus.py",
        "return jnp.concatenate([others, first], axis)",
        "return jnp.concatenate([first, others], axis)",
        "tests/quenchphys/kernels/test_block_hmc.py -k own_sites",
    ),
    Break(
        "blocks forget the kinetic energy",
        "quenchphys/kernels/block_hmc.py",
        "change + 0.5 * (final - momentum) * (final + momentum)",
        "change + 0.0 * (final - momentum) * (final + momentum)",
        "tests/quenchphys/kernels/test_block_hmc.py -k invariant",
    ),
    Break(
        "a trajectory that leaves the phase is kept",
        "quenchphys/kernels/block_hmc.py",
        "Moved(jnp.where(inside, moved, x)",
        "Moved(moved",
        "tests/quenchphys/kernels/test_block_hmc.py -k taken_back",
    ),
    Break(
        "the norm of the Gaussian of a phase has the wrong sign",
        "lattices/phase_field.py",
        "np.log(prior / precision).sum()",
        "np.log(precision / prior).sum()",
        "tests/lattices/test_phase_field.py -k exact_norm",
    ),
    Break(
        "the constant of a phase is left out of log Z",
        "lattices/phase_field.py",
        "+ norm - len(eigenvalues) * float(np.float32(self.shift))",
        "+ norm",
        "tests/quenchphys/samplers/test_bridge_chains.py -k log_z",
    ),
    Break(
        "the trapezoid of a bridge is corrected the wrong way",
        "quenchphys/bridging/placement.py",
        "(variance[..., 1:] - variance[..., :-1]) / 12",
        "(variance[..., :-1] - variance[..., 1:]) / 12",
        "tests/quenchphys/samplers/test_bridge_chains.py -k known_curves",
    ),
    Break(
        "the root of two phases moves the wrong way",
        "observables/phases_apart.py",
        "return -SIGNS[phase] * (log_z",
        "return SIGNS[phase] * (log_z",
        "tests/observables/test_phases_apart.py -k same_log_z",
    ),
    Break(
        "reduced potentials of levels have the wrong sign",
        "observables/exchange/pymbar.py",
        "u_kn[1:] = -mixture",
        "u_kn[1:] = mixture",
        "tests/observables/exchange/test_exchange.py -k same_volumes",
    ),
    Break(
        "observables of pyerrors forget the weight of the walk",
        "observables/exchange/pyerrors.py",
        "targets.log_t(energy, beta) - group.log_w",
        "targets.log_t(energy, beta)",
        "tests/observables/exchange/test_exchange.py -k pyerrors_has",
    ),
    Break(
        "chains of pyerrors are not in order",
        "observables/exchange/pyerrors.py",
        "values[order].reshape(count, -1)",
        "values.reshape(count, -1)",
        "tests/observables/exchange/test_exchange.py -k pyerrors_has",
    ),
    Break(
        "the scale of log Z has no error in pyerrors",
        "observables/exchange/pyerrors.py",
        "list(met[0]), names) * (met[0].size / slope)",
        "list(met[0]), names) * 0.0",
        "tests/observables/exchange/test_exchange.py -k pyerrors_has",
    ),
    Break(
        "exported samples are not weighted for their target",
        "observables/exchange/weighted.py",
        "log_weight = base + targets.log_t(energy, float(beta))",
        "log_weight = base - energy",
        "tests/observables/exchange/test_exchange.py -k anesthetic_weighs",
    ),
    Break(
        "draws for ArviZ are not taken by weight",
        "observables/exchange/arviz.py",
        "chosen = samples.resampled(chains * int(draws), rng)",
        "chosen = rng.integers(len(samples.log_weight), size=chains * int(draws))",
        "tests/observables/exchange/test_exchange.py -k arviz_summaries",
    ),
    Break(
        "kept volumes do not notice that a ladder was changed",
        "observables/samples/kept.py",
        "or _kept[key].checksum != checksum:",
        "or False:",
        "tests/observables/samples/test_kept.py",
    ),
    Break(
        "the bias of a chosen level is not subtracted right",
        "quenchphys/smc/population.py",
        "share, steeper = (jax.ops",
        "steeper, _ = (jax.ops",
        "tests/quenchphys/smc/test_population.py -k bias_of_a_chosen",
    ),
    Break(
        "the scatter over seeds is taken for the error of their mean",
        "workflows/reproduction/table.py",
        "student * float(deviation) / math.sqrt(seeds)",
        "student * float(deviation)",
        "tests/workflows/reproduction/test_reproduce_paper.py -k printed",
    ),
    Break(
        "a deviation ignores the error of the printed value",
        "workflows/reproduction/table.py",
        'combined = np.hypot(data["ours_err"], data["paper_err"])',
        'combined = data["ours_err"]',
        "tests/workflows/reproduction/test_reproduce_paper.py -k combined",
    ),
    Break(
        "pooled weights of the paper forget the Boltzmann factor of a level",
        "workflows/reproduction/pooling.py",
        "return replica.telescoped - replica.level + np.log(width)",
        "return replica.telescoped + np.log(width)",
        "tests/workflows/reproduction/test_reproduce_paper.py -k weights_of_the_paper",
    ),
    Break(
        "exact P(E) without the Jacobian of the radius",
        "workflows/reproduction/exact.py",
        "- u - np.log(np.gradient(u, s)) -",
        "- u -",
        "tests/workflows/reproduction/test_exact.py",
    ),
    Break(
        "levels that carry weight with another width of P(E)",
        "workflows/reproduction/path_length.py",
        "2 * math.sqrt(math.pi * variance)",
        "math.sqrt(2 * math.pi * variance)",
        "tests/workflows/reproduction/test_reproduce_paper.py -k drop_of_a_level",
    ),
    Break(
        "tempering is expected to find the spike",
        "workflows/reproduction/analytic.py",
        "MISSED = math.log(0.1)",
        "MISSED = 0.0",
        "tests/workflows/reproduction/test_experiments.py -k miss_the_spike",
    ),
    Break(
        "both phases of phi^6 have the evidence of one",
        "workflows/reproduction/phi6.py",
        "LOG_Z_DISORDERED[0] - math.log1p(-share)",
        "LOG_Z_DISORDERED[0]",
        "tests/workflows/reproduction/test_experiments.py -k both_phases",
    ),
    Break(
        "the score of a soft wall points outwards",
        "workflows/reproduction/sketch.py",
        "-x - nu * slope(x)",
        "-x + nu * slope(x)",
        "tests/workflows/reproduction/test_experiments.py -k soft_and_hard",
    ),
    Break(
        "steps are counted the wrong way round",
        "observables/multicanonical_weight.py",
        "(place[:, :-1].ravel(), place[:, 1:].ravel())",
        "(place[:, 1:].ravel(), place[:, :-1].ravel())",
        "tests/observables/test_multicanonical_weight.py",
    ),
    Break(
        "draws are weighted as if all prior draws had been kept",
        "observables/draws.py",
        "float((level < 0).sum())",
        "float(replica.draws)",
        "tests/observables/test_draws.py -k means_of_the_target",
    ),
    Break(
        "draws above all levels are not refused",
        "observables/draws.py",
        "if self.uncovered > UNCOVERED:",
        "if self.uncovered > 1:",
        "tests/observables/test_draws.py -k above_the_levels",
    ),
    Break(
        "draws of a walk forget its weight",
        "observables/draws.py",
        "log_w=log_t(last) - last.log_w,",
        "log_w=log_t(last),",
        "tests/observables/test_draws.py -k walk",
    ),
    Break(
        "a walk keeps samples of other configurations when it is restarted",
        "quenchphys/walk.py",
        "none = self.data.isel(sweep=slice(0, 0), draw=slice(0, 0))",
        "none = self.data",
        "tests/quenchphys/storage/test_walk.py -k restarted",
    ),
    Break(
        "averages at coexistence take the point as known",
        "observables/equal_point.py",
        "averages=values + drift * step[:, :, None],",
        "averages=values,",
        "tests/observables/test_equal_point.py -k include_that_of_the_root",
    ),
    Break(
        "log Z at coexistence takes the point as known",
        "observables/equal_point.py",
        "log_share = np.log(share) + pull * x * step",
        "log_share = np.log(share) + 0 * step",
        "tests/observables/test_equal_point.py -k include_that_of_the_root",
    ),
    Break(
        "intervals of the table are narrow relative to a hard core",
        "observables/samples/mixture.py",
        "NARROWEST * np.maximum(np.abs(left), np.abs(right))",
        "1e-9 * (high - low)",
        "tests/observables/samples/test_mixture.py -k hard_core",
    ),
    Break(
        "undefined observables decide phases",
        "observables/phases.py",
        'pool.check_defined(by, "tell the phases apart")',
        "pass",
        "tests/observables/estimation/test_estimator.py -k undefined",
    ),
    Break(
        "undefined observables spoil the genealogy",
        "observables/estimation/terms.py",
        "np.nan_to_num(self.values.rows(part)) - self.mean[0]",
        "self.values.rows(part) - self.mean[0]",
        "tests/observables/estimation/test_estimator.py -k undefined",
    ),
    Break(
        "a ladder is pooled twice",
        "observables/samples/pool.py",
        "if first != number:",
        "if False:",
        "tests/observables/estimation/test_estimator.py -k pooled_once",
    ),
    Break(
        "rungs are not normalised",
        "observables/checks.py",
        'np.sum(share[r, :count]) ** 2 / np.sum(share[r, :count] ** 2)',
        '1 / np.sum(share[r, :count] ** 2)',
        "tests/observables/test_spectrum.py -k add_up",
    ),
    Break(
        "the logarithm of a mean Z is taken for unbiased",
        "observables/estimation/errors.py",
        "return error**2 / 2 * (1 - len(self.found.log_z) if nested else 1)",
        "return np.zeros_like(error)",
        "tests/observables/estimation/test_errors.py -k corrected_log_of_their_mean",
    ),
    Break(
        "errors of few replicas are not widened",
        "observables/estimation/errors.py",
        "return stats.t.isf(stats.norm.sf(1.0), freedom)",
        "return np.ones_like(freedom)",
        "tests/observables/estimation/test_errors.py -k pooled_by_what_they_know",
    ),
    Break(
        "torn replicas are calmed by their families",
        "observables/estimation/errors.py",
        "alone = ~(excess > DISAGREE)",
        "alone = ~(excess >= 0)",
        "tests/observables/estimation/test_errors.py -k pooled_by_what_they_know",
    ),
    Break(
        "an exponent that the smallest size moves is trusted",
        "workflows/scaling/second_order.py",
        "if not abs(moved - self.value) > self.error:",
        "if True:",
        "tests/workflows/scaling/test_finite_size.py -k no_exponent",
    ),
    Break(
        "neighbouring studies share seeds",
        "workflows/budget.py",
        "return int(np.random.SeedSequence([study, int(use), number]).generate_state(1)[0])",
        "return study + int(use) + number",
        "tests/workflows/coexistence_point/test_search.py -k share_a_seed",
    ),
    Break(
        "calibration does not notice errors that are too small",
        "workflows/calibration.py",
        "if abs(deviation - 1) > max(SIGNIFICANT * deviation_err, LARGEST_DEVIATION):",
        "if False:",
        "tests/workflows/test_calibration.py -k named",
    ),
    Break(
        "metropolis accepts everything",
        "quenchphys/kernels/base.py",
        "choose(log_u < log_accept, proposal, point)",
        "choose(log_u < jnp.where(jnp.isfinite(log_accept), 0.0, log_accept), proposal, point)",
        "tests/quenchphys/kernels/test_kernels.py -k keeps_the_density",
    ),
    Break(
        "mala forgets the way back",
        "quenchphys/kernels/mala.py",
        "0.5 * over_coordinates((noise - back) * (noise + back))",
        "0.0",
        "tests/quenchphys/kernels/test_kernels.py -k mala",
    ),
    Break(
        "hmc forgets the kinetic energy",
        "quenchphys/kernels/hmc.py",
        "density.log_change(point, proposal) + kinetic",
        "density.log_change(point, proposal)",
        "tests/quenchphys/kernels/test_kernels.py -k hmc",
    ),
    Break(
        "hmc counts the oscillators twice",
        "quenchphys/kernels/hmc.py",
        "kick * density.score(point) + recall * point.position",
        "kick * density.score(point)",
        "tests/quenchphys/kernels/test_kernels.py -k stiff",
    ),
    Break(
        "barker forgets the sign probabilities",
        "quenchphys/kernels/barker.py",
        "density.log_change(point, proposal) + over_coordinates(back)",
        "density.log_change(point, proposal)",
        "tests/quenchphys/kernels/test_kernels.py -k barker",
    ),
    Break(
        "branching does not split the weight",
        "quenchphys/smc/population.py",
        "log_weight[parent] - jnp.log(copies[parent])",
        "log_weight[parent]",
        "tests/quenchphys/smc/test_population.py -k branching",
    ),
    Break(
        "branching draws donors evenly",
        "quenchphys/smc/population.py",
        "cumulative = jnp.cumsum(jnp.exp(log_weight))",
        "cumulative = jnp.cumsum(jnp.where(log_weight > -jnp.inf, 1.0, 0.0))",
        "tests/quenchphys/smc/test_population.py -k donors",
    ),
    Break(
        "resampling ignores the weights",
        "quenchphys/smc/population.py",
        "jnp.searchsorted(jnp.cumsum(jnp.exp(log_weight)), teeth)",
        "jnp.searchsorted(jnp.cumsum(jnp.full_like(log_weight, 1 / log_weight.size)), teeth)",
        "tests/quenchphys/smc/test_population.py -k resampling_keeps",
    ),
    Break(
        "levels are chosen by the size of carried weights",
        "quenchphys/smc/levels.py",
        "bisect(keeps_enough, lowest, parameter, arithmetic_mean)",
        "bisect(lambda new: effective_size(log_weight + self.log_ratio(energy, parameter, new)) "
        ">= target * effective_size(log_weight), lowest, parameter, arithmetic_mean)",
        "tests/quenchphys/smc/test_population.py -k sway",
    ),
    Break(
        "weights are not carried",
        "quenchphys/smc/step.py",
        "normalise(before + step)",
        "normalise(-jnp.log(float(plan.particles)) + step)",
        "tests/quenchphys/smc/test_unbiased_volumes.py",
    ),
    Break(
        "an untuned kernel reads its scale from the particles",
        "quenchphys/smc/step.py",
        "if plan.kernel.step_size is not None:",
        "if False:",
        "tests/quenchphys/tuning/test_tuning.py -k untuned",
    ),
    Break(
        "energies do not follow their particles when these are copied",
        "quenchphys/smc/step.py",
        "        point=point,\n        seen=seen,",
        "        point=point._replace(energy=state.point.energy),\n        seen=seen,",
        "tests/quenchphys/smc/test_loop.py -k configurations",
    ),
    Break(
        "minimum norm forgets the kinetic energy",
        "quenchphys/kernels/minimum_norm.py",
        "density.log_change(point, proposal) + kinetic",
        "density.log_change(point, proposal)",
        "tests/quenchphys/kernels/test_kernels.py -k minimum",
    ),
    Break(
        "chains take the weight where they were for that where they go",
        "quenchphys/samplers/multicanonical_chains.py",
        "return self._at(proposed, jnp)[0] - self._at(energy, jnp)[0]",
        "return self._at(energy, jnp)[1] * (proposed - energy)",
        "tests/quenchphys/samplers/test_multicanonical_chains.py -k stay_there",
    ),
    Break(
        "weights of chains are not straight beyond the ends",
        "quenchphys/samplers/multicanonical_chains.py",
        "((a * u + b) * u + c) * u + d + slope * beyond, slope",
        "((a * u + b) * u + c) * u + d, slope",
        "tests/quenchphys/samplers/test_multicanonical_chains.py -k straight",
    ),
    Break(
        "chains stay where a weight that was improved late had left them",
        "workflows/coexistence_point/walk.py",
        "respread(walks, wanted)",
        "start.last",
        "tests/workflows/coexistence_point/test_walk.py -k begin_again",
    ),
    Break(
        "chains are not scaled by the prior",
        "observables/samples/pool.py",
        "-group.log_w + log_c - np.log(group.log_w.size)",
        "-group.log_w + 0 * log_c - np.log(group.log_w.size)",
        "tests/workflows/coexistence_point/test_search.py -k quadrature",
    ),
    Break(
        "a ladder that lags is believed",
        "quenchphys/smc/lag.py",
        "return slowest.share > LARGEST_SHARE and not scatter <= LARGEST_SCATTER",
        "return False",
        "tests/quenchphys/smc/test_lag.py",
    ),
    Break(
        "a curve rests on a ladder that lags",
        "workflows/thermal.py",
        "result = observables.thermodynamics(source, grid)",
        "result = observables.thermodynamics(ladder, grid)",
        "tests/workflows/test_refinement.py -k lags",
    ),
    Break(
        "problems are not compared with their prior draws",
        "quenchphys/consistency/__init__.py",
        "        check_prior(argument, x, spread, found)\n",
        "        pass\n",
        "tests/quenchphys/consistency/test_consistency.py -k faulty",
    ),
    Break(
        "couplings are believed",
        "quenchphys/consistency/__init__.py",
        "        check_couplings(seen, partial(rebuilt_by_itself, seen))\n",
        "        pass\n",
        "tests/quenchphys/consistency/test_consistency.py -k faulty",
    ),
    Break(
        "a field does not change the coupling it is asked to",
        "lattices/field.py",
        "changed = [value if _coupling_name(n) == name else c",
        "changed = [c",
        "tests/quenchphys/consistency/test_consistency.py -k shipped_field",
    ),
    Break(
        "symmetries are believed",
        "quenchphys/consistency/__init__.py",
        "        check_symmetries(found)\n",
        "        pass\n",
        "tests/quenchphys/consistency/test_consistency.py -k faulty",
    ),
    Break(
        "a prior with edges is refused",
        "quenchphys/consistency/prior.py",
        "if fails and not _is_plausible(problem, x, log_prior, spread, which, moved=expected == 0):",
        "if fails:",
        "tests/quenchphys/consistency/test_consistency.py -k sound",
    ),
    Break(
        "a sampler does not check its problem",
        "quenchphys/samplers/tempered.py",
        "    check(problem)\n",
        "",
        "tests/quenchphys/consistency/test_consistency.py -k every_sampler",
    ),
    Break(
        "an object that was changed keeps its program",
        "quenchphys/object_state.py",
        'found = {name: part for name, part in getattr(value, "__dict__", {}).items() if name not in cached}',
        "found = {}",
        "tests/quenchphys/test_object_state.py -k compiled_again",
    ),
    Break(
        "a stale program is believed",
        "quenchphys/consistency/program.py",
        "if known.any() and (at := worst(is_now[known], then[known], scale[known])) is not None:",
        "if (at := None) is not None:",
        "tests/quenchphys/test_object_state.py -k belongs",
    ),
    Break(
        "a hard core begins at its largest energies",
        "quenchphys/smc/levels.py",
        "near = ascending[jnp.minimum(n, count) - 1] - lowest + tiny",
        "near = 1e-6 * (ascending[count - 1] - lowest) + tiny",
        "tests/quenchphys/smc/test_levels.py -k first_level",
    ),
    Break(
        "weights of a level that falls far are rounded",
        "quenchphys/smc/levels.py",
        "jnp.where(relative < -0.5, jnp.log(new / old), jnp.log1p(relative))",
        "jnp.log1p(relative)",
        "tests/quenchphys/smc/test_levels.py -k rounding",
    ),
    Break(
        "energies too large for float32 are kept",
        "quenchphys/smc/step.py",
        "dead = undefined | (point.energy > LARGEST_ENERGY)",
        "dead = undefined",
        "tests/quenchphys/smc/test_levels.py -k too_large",
    ),
    Break(
        "seeds are taken modulo 2^32",
        "quenchphys/parallel/random_numbers.py",
        "np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)",
        "np.array([0, seed & 0xFFFFFFFF], np.uint32)",
        "tests/quenchphys/parallel/test_seeds.py -k same_key",
    ),
    Break(
        "kept prior draws are not those they are said to be",
        "quenchphys/storage/build_ladder.py",
        "np.arange(course.drawn.shape[1], dtype=np.int32)",
        "1 + np.arange(course.drawn.shape[1], dtype=np.int32)",
        "tests/quenchphys/smc/test_loop.py -k configurations",
    ),
    Break(
        "the same families are kept from level to level",
        "quenchphys/storage/album.py",
        "for k in (np.arange(count) + begin) % count:",
        "for k in np.arange(count):",
        "tests/quenchphys/smc/test_loop.py -k families",
    ),
    Break(
        "trust hides what it does not cover",
        "quenchphys/console/report.py",
        "*_doubts(ladder), *_limits(ladder)]",
        "*_doubts(ladder)]",
        "tests/quenchphys/test_outcomes.py -k what_cannot_be",
    ),
    Break(
        "a second study is let in",
        "quenchphys/storage/lock.py",
        "fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "tests/workflows/test_store.py -k one_study",
    ),
    Break(
        "a lock file that was removed counts as a lock",
        "quenchphys/storage/lock.py",
        "if _same(file, opened):",
        "if True:",
        "tests/workflows/test_store.py -k was_removed",
    ),
    Break(
        "a kept ladder is used whatever it was made for",
        "workflows/store.py",
        "why = why or _why_other(_origin_of(found), self._origin(problem))",
        "pass",
        "tests/workflows/test_store.py -k edited_model",
    ),
    Break(
        "a kept file carries no fingerprint of its problem",
        "workflows/store.py",
        "\"sampled\": {} if problem is None else _as_read(fingerprint(problem))}",
        "\"sampled\": {}}",
        "tests/workflows/test_store.py -k walk_of_another",
    ),
    Break(
        "a request does not know the model function",
        "workflows/model_family.py",
        "\"problem\": self._fingerprint()}",
        "\"problem\": None}",
        "tests/workflows/test_store.py -k edited_function",
    ),
    Break(
        "a folder without a request is adopted",
        "workflows/store.py",
        "why = self._why_not_continued(folder)",
        "why = (folder / \"request.json\").exists() and self._why_not_continued(folder)",
        "tests/workflows/test_store.py -k without_a_request",
    ),
    Break(
        "ladders of another request are deleted",
        "quenchphys/storage/atomic_files.py",
        "return path.rename(new)",
        "return (shutil.rmtree(path), new)[1]",
        "tests/workflows/test_store.py -k set_aside_and",
    ),
    Break(
        "a changed record is continued",
        "quenchphys/storage/checkpoint.py",
        "        check_record(self.record, level,",
        "        (lambda *_: None)(self.record, level,",
        "tests/quenchphys/storage/test_checkpoint.py -k record_that_was_changed",
    ),
    Break(
        "a continued record forgets the digest of its beginning",
        "quenchphys/storage/record.py",
        "column.shape, column.dtype, column.digest = kept.shape, kept.dtype, digest",
        "column.shape, column.dtype = kept.shape, kept.dtype",
        "tests/quenchphys/storage/test_checkpoint.py -k digest_of_all",
    ),
    Break(
        "a record that was changed during the run becomes a ladder",
        "quenchphys/storage/record.py",
        "return found.digest() == self.digest.digest()",
        "return True",
        "tests/quenchphys/test_faults.py -k during_the_run",
    ),
    Break(
        "fingerprints forgive more than rounding",
        "quenchphys/identity.py",
        "> ROUNDING * largest",
        "> 0.1 * largest",
        "tests/quenchphys/test_identity.py -k rounding_is_forgiven",
    ),
    Break(
        "fingerprints are compared bit by bit",
        "quenchphys/identity.py",
        "> ROUNDING * largest",
        "> 0",
        "tests/quenchphys/test_identity.py -k rounds_differently",
    ),
    Break(
        "prior draws of another run are used",
        "quenchphys/storage/checkpoint.py",
        "if found[\"seal\"][\"prior\"] != self._prior_digest:",
        "if False:",
        "tests/quenchphys/storage/test_checkpoint.py -k prior_draws_of",
    ),
    Break(
        "a zeroed seal is a missing one",
        "quenchphys/storage/checksum.py",
        "return own is not None and size > own",
        "return False",
        "tests/quenchphys/storage/test_netcdf.py -k damaged_seal",
    ),
    Break(
        "a signal after the last block is lost",
        "quenchphys/console/interruption.py",
        "    if any_of(bool(request)):\n        if not",
        "    if any_of(False):\n        if not",
        "tests/quenchphys/storage/test_checkpoint.py -k very_end",
    ),
    Break(
        "settings keep the types of numpy",
        "quenchphys/settings.py",
        "object.__setattr__(settings, name, whole(name, getattr(settings, name), smallest))",
        "whole(name, getattr(settings, name), smallest)",
        "tests/quenchphys/test_plain_values.py -k pythons_own",
    ),
    Break(
        "an edited prior is not noticed",
        "quenchphys/identity.py",
        '        "log prior": jax.vmap(problem.log_prior)(x),\n',
        "",
        "tests/quenchphys/storage/test_checkpoint.py -k edited",
    ),
    Break(
        "labels are looked at after the run",
        "quenchphys/consistency/__init__.py",
        "        check_labels(seen)\n",
        "        pass\n",
        "tests/quenchphys/test_plain_values.py -k before_sampling",
    ),
    Break(
        "a forked process keeps its devices",
        "quenchphys/parallel/fork_guard.py",
        "bridge._backends, bridge._default_backend = NoDevices(), None",
        "pass",
        "tests/quenchphys/parallel/test_environment.py -k forked",
    ),
    Break(
        "a damaged entry of the cache stays",
        "quenchphys/parallel/compile_cache.py",
        "(folder / f\"{cache_key}-cache\").unlink(missing_ok=True)",
        "pass",
        "tests/quenchphys/parallel/test_environment.py -k damaged",
    ),
    Break(
        "the cache is open to others",
        "quenchphys/parallel/compile_cache.py",
        "            folder.chmod(0o700)\n",
        "            pass\n",
        "tests/quenchphys/parallel/test_environment.py -k closed",
    ),
    Break(
        "weights of a network are not divided by sqrt(d)",
        "quenchphys/targets/networks.py",
        "weight / math.sqrt(weight.shape[-2])",
        "weight / weight.shape[-2]",
        "tests/quenchphys/targets/test_networks.py -k energy_and_gradient",
    ),
    Break(
        "biases of a network have the scale of weights",
        "quenchphys/targets/networks.py",
        "BIAS_SCALE * layer.bias",
        "layer.bias",
        "tests/quenchphys/targets/test_networks.py -k energy_and_gradient",
    ),
    Break(
        "the last layer has biases",
        "quenchphys/targets/networks.py",
        "if number < len(self.hidden):",
        "if number < len(pairs):",
        "tests/quenchphys/targets/test_networks.py -k energy_and_gradient",
    ),
    Break(
        "inputs are standardised with the test rows too",
        "quenchphys/targets/tables.py",
        "train = table.inputs[~chosen]",
        "train = table.inputs",
        "tests/quenchphys/targets/test_tables.py -k standardised",
    ),
    Break(
        "a constant column is divided by its rounding error",
        "quenchphys/targets/tables.py",
        "np.where(np.ptp(train, axis=0) > 0, train.std(axis=0), 1.0)",
        "train.std(axis=0)",
        "tests/quenchphys/targets/test_tables.py -k standardised",
    ),
    Break(
        "a rare class may miss the test rows",
        "quenchphys/targets/tables.py",
        "some[: max(1, ",
        "some[: max(0, ",
        "tests/quenchphys/targets/test_tables.py -k stratified",
    ),
    Break(
        "labels that are floats are classes",
        "quenchphys/targets/tables.py",
        "if _is_float(cell):",
        "if False:",
        "tests/quenchphys/targets/test_tables.py -k floats",
    ),
    Break(
        "a mean is taken for a likelihood",
        "quenchphys/targets/likelihoods.py",
        "<= TOLERANCE * float(jnp.sum(jnp.abs(each)))",
        "<= float(jnp.sum(jnp.abs(each)))",
        "tests/quenchphys/targets/test_likelihoods.py -k mean",
    ),
    Break(
        "scales of a prior are forgotten",
        "quenchphys/targets/likelihoods.py",
        "self.unflatten(self.scale * x)",
        "self.unflatten(x)",
        "tests/quenchphys/targets/test_likelihoods.py -k evidence",
    ),
    Break(
        "a Bayes factor has the error of one model",
        "observables/evidence.py",
        "math.hypot(*error)",
        "error[0]",
        "tests/observables/test_model_comparison.py -k two_widths",
    ),
    Break(
        "a Bayes factor of other data is not refused",
        "observables/evidence.py",
        "data[0] != data[1]",
        "False",
        "tests/observables/test_model_comparison.py -k no_sense",
    ),
    Break(
        "predictions average logarithms",
        "observables/prediction.py",
        "parts.append(logsumexp(log_p, axis=0))",
        "parts.append(log_p.mean(axis=0) + np.log(len(log_p)))",
        "tests/observables/test_model_comparison.py -k not_their_logarithms",
    ),
    Break(
        "the jackknife of predictions is too small by its number of chains",
        "observables/prediction.py",
        "np.sqrt((chains - 1) * without.var())",
        "np.sqrt(without.var())",
        "tests/observables/test_model_comparison.py -k calibrated",
    ),
    Break(
        "levels count in the Kish number whatever their distance",
        "observables/effective_samples.py",
        " + np.log(width))[:, None]",
        ")[:, None]",
        "tests/observables/test_model_comparison.py -k kish",
    ),
    Break(
        "tempered particles are not weighted against all stages",
        "observables/effective_samples.py",
        "log_q = log_w - energy - log_mixture",
        "log_q = log_w - energy",
        "tests/observables/test_model_comparison.py -k kish",
    ),
]


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    missed = 0
    for one in BREAKS:
        if word not in one.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "out", "docs"))
            path = copy / one.file
            text = path.read_text()
            if text.count(one.line) != 1:
                print(f"{one.name:62s} its line stands {text.count(one.line)} times in {one.file}")
                missed += 1
                continue
            path.write_text(text.replace(one.line, one.broken))
            command = [sys.executable, "-m", "pytest", "-n", "0", "-x", *one.test.split()]
            code = subprocess.run(command, cwd=copy, capture_output=True, check=False).returncode
        missed += code != 1
        print(f"{one.name:62s} {'noticed' if code == 1 else 'NOT NOTICED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
