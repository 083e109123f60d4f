"""Registration by presence: what the modules of a package define under one name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def defined_in(package: str, paths: Iterable[str], name: str) -> list[Any]:
    """`name` of every module of a package that defines it, in the alphabetical order of the modules.

    A new module registers itself: no list of modules has to be kept beside them.
    """
    modules = [importlib.import_module(f"{package}.{found.name}") for found in pkgutil.iter_modules(paths)]
    return [vars(module)[name] for module in modules if name in vars(module)]
