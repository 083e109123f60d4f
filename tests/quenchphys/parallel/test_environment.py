"""Odd environments: other settings of JAX, a forked process, a cache of somebody else's or a damaged one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import quenchphys as qp
from quenchphys.parallel import compile_cache, fork_guard

ROOT = Path(__file__).resolve().parents[3]
TARGET = qp.targets.gaussian(4)
SMALL = {"particles": 32, "replicas": 1}


def test_a_sampler_inside_jit_is_refused_in_one_sentence():
    with pytest.raises(RuntimeError, match="cannot run inside jit, scan or any other") as refused:
        jax.jit(lambda: qp.quench(TARGET, **SMALL))()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "setting", [lambda: jax.numpy_dtype_promotion("strict"), lambda: jax.transfer_guard("disallow_explicit")]
)
def test_other_settings_of_jax_change_nothing(setting):
    usual = qp.quench(TARGET, **SMALL)
    with setting():
        odd = qp.quench(TARGET, **SMALL)
    assert odd.particles["energy"].identical(usual.particles["energy"])


FORKING = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")
import jax.numpy as jnp, lattices, quenchphys
def build(): lattices.phi6(L=4, mu2=2.3)
def add(): return float((x + 1).sum())
def read(): return float(__import__("numpy").asarray(x).sum())
build(); x = jnp.ones(3); x.sum().block_until_ready()
for work in (build, add, read):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            print("went on", pool.apply_async(work).get(60))
        except RuntimeError as refused:
            print(refused)
"""


def test_a_forked_worker_is_refused_at_its_first_use_of_jax():
    """Also of JAX itself; arrays from before the fork can be read."""
    command = [sys.executable, "-c", FORKING]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=150).stdout.splitlines()
    assert ["spawn" in line for line in said] == [True, True, False]
    assert said[2] == "went on 3.0"


def test_the_guard_of_forks_does_without_private_names_of_jax(monkeypatch):
    """Where JAX has renamed them, a worker of a process that used our samplers is still refused."""
    monkeypatch.delattr("jax._src.xla_bridge._backends")
    fork_guard._after_fork()
    monkeypatch.setattr(fork_guard, "_first", os.getpid() - 1)
    with pytest.raises(RuntimeError, match="spawn"):
        fork_guard.check_not_forked()


def test_the_guard_of_forks_does_not_fail_where_jax_has_changed(monkeypatch):
    def gone():
        raise AttributeError

    monkeypatch.setattr("jax._src.xla_bridge._backends", {"cpu": object()})
    monkeypatch.setattr(fork_guard, "_inherited", False)
    monkeypatch.setattr(jax, "clear_caches", gone)
    fork_guard._after_fork()
    with pytest.raises(RuntimeError, match="spawn"):
        fork_guard.check_not_forked()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_cache_is_closed_to_others(home):
    before = os.umask(0)
    try:
        folder = compile_cache._own_folder()
    finally:
        os.umask(before)
    assert folder is not None and stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    compile_cache._own_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_cache_of_somebody_else_is_not_used(home, monkeypatch):
    compile_cache._own_folder()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(RuntimeWarning, match="belongs to another user, so it is not used"):
        assert compile_cache._own_folder() is None


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert compile_cache._own_folder() is None


COMPILING = """
import jax, warnings
warnings.simplefilter("error")
from quenchphys.parallel.compile_cache import keep_compiled_programs
keep_compiled_programs()
print(float(jax.jit(lambda x: x * 3 + 1)(2.0)))
"""


def test_a_damaged_entry_of_the_cache_is_replaced(home):
    def compute() -> str:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", COMPILING], capture_output=True, text=True, env=environment)
        return done.stdout.strip() or done.stderr

    assert compute() == "7.0"
    entries = {file: file.read_bytes() for file in (home / "quenchphys").glob("*-cache")}
    assert entries
    for file, content in entries.items():
        file.write_bytes(content[: len(content) // 2])
    assert compute() == "7.0"
    assert all(len(file.read_bytes()) > len(content) // 2 for file, content in entries.items())


def test_the_cache_does_without_private_names_of_jax(home, monkeypatch):
    """Where JAX has renamed them, damaged entries are compiled again each time, and nothing else changes."""
    monkeypatch.delattr("jax._src.compilation_cache.get_executable_and_time")
    compile_cache._replace_damaged_entries(home)
    monkeypatch.delitem(sys.modules, "jax._src.compilation_cache")
    compile_cache._replace_damaged_entries(home)
    assert not hasattr(compile_cache.compilation_cache, "get_executable_and_time")
