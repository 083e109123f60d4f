"""The run: what a ladder and a walk have in common, read from the attributes of their files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


class Run:
    """Base of `Ladder` and `Walk`: the problem that was sampled, its couplings and phases, and the settings.

    Everything is read from the attributes of the file, so that a run that was loaded knows as much as a new one.

    Examples
    --------
    >>> run = qp.load("phi6.nc")
    >>> run.couplings["mu2"]  # value, observable, factor
    (2.2957, 'phi2', 0.5)
    """

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """Attributes of the file: problem, parameters, couplings, phases, settings, seed, versions, ..."""
        raise NotImplementedError

    @property
    def observables(self) -> list[str]:
        """Names of the recorded observables."""
        raise NotImplementedError

    @property
    def problem(self) -> str:
        """Name of the problem."""
        return str(self.attrs.get("problem", "a problem"))

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the problem, as it gave them."""
        return json.loads(self.attrs.get("parameters", "{}"))

    @property
    def couplings(self) -> dict[str, tuple[float, str, float]]:
        """{name: (value, observable, factor)}: U contains value * factor * observable."""
        return {name: tuple(term) for name, term in json.loads(self.attrs.get("couplings", "{}")).items()}

    @property
    def phases(self) -> dict[str, tuple[str, float, float]]:
        """{name: (observable, low, high)}: the phase is low <= observable < high."""
        return {
            name: (observable, -math.inf if low is None else low, math.inf if high is None else high)
            for name, (observable, low, high) in json.loads(self.attrs.get("phases", "{}")).items()
        }

    @property
    def dimension(self) -> int:
        """Number of degrees of freedom: the sites V of a scalar field."""
        return int(self.attrs["dimension"])

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the sampler."""
        return json.loads(self.attrs.get("settings", "{}"))
