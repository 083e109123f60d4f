"""Runs repeat, do not compile again, keep bounded records, and start fast."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

import quenchphys as qp
from quenchphys.settings import Settings
from quenchphys.smc import loop
from quenchphys.smc.programs import programs_for
from quenchphys.storage.album import Album
from quenchphys.storage.record import Record

# The program compiled for these is shared with other tests.
TARGET, SIZE = qp.targets.gaussian(16), {"particles": 64, "replicas": 2}
SMALL = {**SIZE, "stop": qp.LevelLimit(20)}


def test_same_seed_same_ladder_and_other_seed_other_ladder():
    first, again, other = (qp.quench(TARGET, **SMALL, seed=s) for s in (3, 3, 4))
    assert first.levels.identical(again.levels)
    assert first.particles.identical(again.particles)
    assert not np.array_equal(first.levels.energy, other.levels.energy)
    assert len(np.unique(first.levels.energy[:, 5])) == 2, "replicas differ"


def test_another_seed_softness_or_threshold_does_not_compile_again():
    qp.quench(TARGET, **SMALL, seed=0)
    program = programs_for(*loop.plan_for(Settings(**SIZE), 16))
    compiled = program.descend._cache_size(), program.start._cache_size()
    begin = time.monotonic()
    qp.quench(TARGET, **SMALL, seed=1, target_ess=0.9, softness=2.5)
    assert time.monotonic() - begin < 3
    assert (program.descend._cache_size(), program.start._cache_size()) == compiled


def test_after_netket():
    """Importing NetKet switches JAX to double precision and sets a mesh; the engine is not touched by either."""
    code = """
import netket, jax, quenchphys as qp
assert jax.config.jax_enable_x64, "the premise of this test"
ladder = qp.quench(qp.targets.gaussian(16), particles=64, replicas=2, stop=qp.LevelLimit(20), seed=3)
print(ladder.particles.energy.dtype, ladder.levels.energy.values[0, 19])
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NETKET_")}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    said = run.stdout.split()
    plain = qp.quench(TARGET, **SMALL, seed=3)
    assert said[0] == "float32"
    assert float(said[1]) == pytest.approx(float(plain.levels.energy[0, 19]), rel=1e-5)


def test_a_replica_does_not_depend_on_the_others():
    """The same seed with more replicas begins with the same ones, but for rounding in differently shaped loops.

    The step size is given: a warm-up would let the rounding grow.
    """
    settings = {"seed": 9, "kernel": qp.MALA(steps=4, step_size=0.3), "stop": qp.LevelLimit(6)}
    two, four = (qp.quench(TARGET, particles=64, replicas=r, **settings) for r in (2, 4))
    np.testing.assert_allclose(two.levels.energy, four.levels.energy[:2], rtol=1e-3)


def test_genealogy_and_weights_of_the_record():
    ladder = qp.quench(TARGET, **SIZE, seed=2, resample_ess=0.8)
    particles, levels = ladder.particles, ladder.levels
    for r, count in enumerate(levels.level_count.values):
        weight = np.exp(particles.log_weight.values[r, :count])
        np.testing.assert_allclose(weight.sum(axis=1), 1, rtol=1e-4)
        assert np.all(particles.energy.values[r, :count] < levels.energy.values[r, :count, None])
        assert np.all(np.diff(levels.energy.values[r, :count]) < 0)
        ess = 1 / np.sum(weight**2, axis=1) / 64
        np.testing.assert_allclose(levels.ess.values[r, :count], ess, rtol=1e-3)
        resampled = levels.resampled.values[r, :count].astype(bool)
        assert resampled.any() and not resampled.all()
        np.testing.assert_allclose(weight[resampled], 1 / 64, rtol=1e-4)
        ancestor = np.arange(64)
        for k in range(1, count):
            ancestor = ancestor[particles.parent.values[r, k]]
            assert len(np.unique(ancestor)) == levels.lineages.values[r, k]
        assert particles.parent.values[r, 0].max() < 640
    np.testing.assert_allclose(ladder.particles.r2.values / 0.5, ladder.particles.energy.values, rtol=1e-4)


def test_configurations_are_those_of_their_particles():
    ladder = qp.quench(TARGET, **SIZE, seed=3, configurations=100)
    pictures = ladder.configurations
    draws = 64
    assert draws < pictures.sizes["sample"] <= 100 + draws
    for r in range(2):
        level, particle = pictures.level.values[r], pictures.particle.values[r]
        energy = 2 * np.sum(pictures.field.values[r] ** 2, axis=-1)
        there = level >= 0
        recorded = ladder.particles.energy.values[r, level[there], particle[there]]
        np.testing.assert_allclose(energy[there], recorded, rtol=1e-4)
        drawn = (level == -1) & (particle >= 0)
        assert drawn.sum() == draws == len(np.unique(particle[drawn]))
        np.testing.assert_allclose(energy[drawn], ladder.prior.energy.values[r, particle[drawn]], rtol=1e-4)
        assert np.isnan(pictures.field.values[r, (level == -1) & (particle == -1)]).all()


def test_record_spills_to_disk_and_comes_back():
    blocks = [np.random.default_rng(k).random((5, 3, 7)).astype(np.float32) for k in range(6)]
    small, large = Record(limit=1000), Record()
    for block in blocks:
        small.extend(a=block, b=block.astype(np.int32))
        large.extend(a=block, b=block.astype(np.int32))
    spilled, kept = small.finish(28), large.finish(28)
    assert isinstance(spilled["a"].base, np.memmap)
    assert not isinstance(kept["a"].base, np.memmap)
    for name in "ab":
        assert spilled[name].shape == (3, 28, 7)
        np.testing.assert_array_equal(spilled[name], kept[name])


def test_album_is_bounded_and_even():
    album = Album(limit=50)
    for level in range(200):
        album.offer(level, np.full((2, 4), level), np.full((2, 4, 3), float(level)))
    level, particle, field = album.finish()
    assert 25 <= len(level) <= 50
    np.testing.assert_array_equal(field[0, :, 0], level)
    np.testing.assert_array_equal(particle[1], level)
    assert np.ptp(np.diff(level)) <= 1, "evenly spread"
    assert level[0] == 0 and level[-1] > 180


def test_album_keeps_other_families_at_every_level():
    """Particles are offered in the order of their numbers: a stride of 32 must not always keep the first of them."""
    album = Album(limit=64)
    for level in range(1024):
        album.offer(level, np.arange(32)[None], np.zeros((1, 32, 1)))
    place = album.finish()[1][0]
    assert len(place) >= 32
    counts = np.bincount(place // 4, minlength=8)
    assert counts.min() >= 0.5 * counts.mean(), "all eighths of the population"


def test_a_short_run_is_silent_where_standard_error_is_no_terminal(capsys):
    qp.quench(TARGET, **SMALL)
    assert capsys.readouterr().err == ""


def test_import_is_fast_and_without_netket():
    """What takes long to load is loaded when it is used; next to what we cannot do without, the rest is little."""

    def seconds(code: str) -> float:
        """Processor time: other work on the machine stretches it less than the clock."""
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    late = ("netket", "flax", "orbax", "blackjax", "matplotlib", "lattices", "observables", "workflows")
    late += tuple(f"scipy.{part}" for part in ("interpolate", "integrate", "optimize", "stats", "signal"))
    ours = f"import sys, quenchphys; early = set({late}) & set(sys.modules); assert not early, early"
    floor = "import jax, jax.numpy, scipy.special, xarray"
    # A process may meet a busy machine; three times in a row it does not.
    assert any(seconds(ours) < 1.4 * seconds(floor) for _ in range(3))
