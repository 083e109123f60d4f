"""Attributes that the file of every run has: the problem, its couplings and phases, the kernel, and the software."""

from __future__ import annotations

import json
import math
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax

from quenchphys.kernels import Kernel
from quenchphys.labels import labels_of
from quenchphys.plain_values import plain
from quenchphys.problem import ProblemView


def problem_attributes(problem: ProblemView) -> dict[str, Any]:
    """What was sampled, as `quenchphys.run.Run` reads it."""
    labels = labels_of(problem)
    return {
        "problem": labels["model"],
        "parameters": json.dumps(labels["parameters"]),
        "couplings": json.dumps(labels["couplings"]),
        "phases": json.dumps(labels["phases"]),
        "dimension": math.prod(problem.shape),
    }


def software_attributes() -> dict[str, Any]:
    """When, on what and with which versions it was sampled."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": jax.default_backend(),
        "versions": json.dumps(versions()),
    }


def kernel_as_json(kernel: Kernel) -> dict[str, Any]:
    """The parameters of a kernel and its name."""
    return plain("a kernel", vars(kernel)) | {"name": type(kernel).__name__}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for package in ("quenchphys", "jax", "jaxlib", "numpy", "scipy", "xarray"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
