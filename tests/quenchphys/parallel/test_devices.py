"""Replicas and particles spread over devices: the same numbers, to the last bit, however many there are."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import pytest

import quenchphys as qp
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.sharding import LARGEST, largest_tile, set_size, tile_size

RUN = """
import jax
jax.config.update("jax_num_cpu_devices", 8)
import lattices, quenchphys as qp
settings = dict(particles=512, replicas=2, seed=3, stop=qp.LevelLimit(16))
one, other = (qp.quench(lattices.phi6(L=8, mu2=2.2948), **settings, devices=devices) for devices in (1, 8))
for part in ("levels", "particles", "prior"):
    assert getattr(one, part).identical(getattr(other, part)), part
phase = lattices.phase_fields(lattices.phi6(L=6, mu2=2.3))["disordered"]
one, another = (qp.bridge(phase, sweeps=16, seed=3, devices=devices) for devices in (1, 8))
for part in ("levels", "particles", "prior"):
    assert getattr(one, part).identical(getattr(another, part)), part
print(other.attrs["devices"])
"""


def test_the_same_numbers_on_many_devices():
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # compiled as for a user
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[0] == "2 x 4"


def test_tiles_divide_the_population_and_fit_the_cache():
    assert tile_size(400, 1600) * 1600 <= LARGEST
    for particles, dimension in [(2, 1), (7, 10), (400, 1600), (1000, 64), (1000, 10), (8000, 1600), (300, 100_000)]:
        tile = tile_size(particles, dimension)
        assert particles % tile == 0
        assert tile == 1 or tile * dimension <= LARGEST
        assert particles % largest_tile(particles, dimension) == 0
        assert tile <= largest_tile(particles, dimension) <= max(1, LARGEST // dimension)
    assert set_size(8, 100, 10) == 2  # four sets for devices to share
    assert set_size(3, 100, 10) == 1
    assert set_size(8, 1000, 1600) == 1


@pytest.mark.parametrize("devices", [0, 999, "all", [], [1, 2], True])
def test_devices_that_are_not_there(devices):
    with pytest.raises(ValueError, match="devices must be a number"):
        mesh_for(4, 8, devices)
    with pytest.raises(ValueError, match="devices must be a number"):
        qp.quench(qp.targets.gaussian(5), particles=50, replicas=1, devices=devices)


def test_a_list_of_devices():
    mesh = mesh_for(4, 8, jax.devices()[-1:])
    assert list(mesh.devices.flat) == jax.devices()[-1:]
