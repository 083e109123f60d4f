"""Files of the user that have the name of one of our packages are named, not stumbled over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflows.shadowing import check_own_packages

ROOT = Path(__file__).resolve().parents[2]


def test_our_own_packages_are_found():
    check_own_packages()


@pytest.mark.parametrize("name", ["observables", "lattices", "quenchphys"])
def test_a_script_in_the_way_is_named(name, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text("import workflows\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError") and f"{script} is in the way of the package '{name}'" in last
