"""Tests of the gallery: every example runs, with small populations, prints something and draws its picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import jax
import pytest

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"


@pytest.fixture(autouse=True)
def compiled_quickly():
    """Every program here runs once: optimising it would take longer than running it."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.py")), ids=lambda path: path.stem)
def test_example_of_the_gallery_runs(path, small, tmp_path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out
    assert (tmp_path / f"{path.stem}.png").stat().st_size > 10_000
