"""The run: what a ladder and a walk have in common, read from the attributes of their files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from quenchphys.console.forecast import duration
from quenchphys.console.presentation import as_html, presenter


class Run:
    """Base of `Ladder` and `Walk`: the problem that was sampled, its couplings and phases, and the settings.

    Everything is read from the attributes of the file, so that a run that was loaded knows as much as a new one.

    Examples
    --------
    >>> run = qp.load("phi6.nc")
    >>> run.couplings["mu2"]  # value, observable, factor
    (2.2957, 'phi2', 0.5)
    """

    def _repr_html_(self) -> str:
        """A card for notebooks: outcome, log Z with its error, P(E)."""
        shown = presenter()
        return as_html(repr(self)) if shown is None else shown.card(self)

    def plot(self, **named: Any) -> Any:
        """Draw the run: the levels of a ladder with P(E), or the energies of the chains of a walk.

        Parameters
        ----------
        named
            As in `observables.plot.run`.

        Returns
        -------
        Figure
            To be saved by its `savefig`.

        Examples
        --------
        >>> ladder.plot().savefig("ladder.png")
        """
        shown = presenter()
        if shown is None:
            raise RuntimeError("There is nothing that draws runs: the package `observables` is not installed.")
        return shown.plot(self, **named)

    def _with_findings(self, text: str, beta: float) -> str:
        """A report, and what the analysis adds to it."""
        shown = presenter()
        return text if shown is None else "\n".join([text, *shown.words(self, beta)])

    def _made(self) -> str:
        """Seed, time and date, in one line."""
        words = [f"seed {self.attrs['seed']}"] if "seed" in self.attrs else []
        words += [duration(float(self.attrs["wall_time"]))] if "wall_time" in self.attrs else []
        words += [str(self.attrs["created"])[:16].replace("T", " ")] if "created" in self.attrs else []
        return ", ".join(words)

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
