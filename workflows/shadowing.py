"""Files of the user that stand in the way of our own packages.

Python looks for modules in the folder of the script first, so a script called observables.py or lattices.py there is found
instead of the package of that name, and fails somewhere inside.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

OWN = ("lattices", "quenchphys", "observables")


def check_own_packages(names: tuple[str, ...] = OWN) -> None:
    """Refuse to go on where one of our packages would be found somewhere else than beside this one.

    Parameters
    ----------
    names
        The packages.

    Raises
    ------
    ImportError
        With the file that is in the way.
    """
    home = Path(__file__).resolve().parents[1]
    for name in names:
        found = _place_of(name)
        if found is not None and found.resolve().parent.parent != home:
            raise ImportError(
                f"{found} is in the way of the package {name!r} of quenchphys, which Python therefore cannot find; rename "
                "that file, or move it to another folder."
            )


def _place_of(name: str) -> Path | None:
    """The file that `import name` gives; None if there is none."""
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None)
    if loaded is None:
        spec = importlib.util.find_spec(name)
        origin = None if spec is None else spec.origin
        if spec is not None and origin is None:  # a folder without __init__.py
            origin = str(Path(next(iter(spec.submodule_search_locations or ["."]))) / "__init__.py")
    return None if origin is None else Path(origin)
