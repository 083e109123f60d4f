"""What the tests of pages and of the gallery share: small populations instead of those the pages show."""

from __future__ import annotations

import matplotlib
import pytest

import quenchphys as qp
import workflows
from quenchphys.problem import view

PARTICLES = 64  # at most, to save time; the pages show what a user would choose
CHAINS = {"groups": 8, "chains": 2, "sweeps": 176}  # of a coexistence point, where a page gives no numbers
LADDERS: dict[tuple[str, ...], qp.Ladder] = {}  # many pages start with the same run


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Small populations, figures without a screen, and files in a temporary directory."""

    def limited(run):
        def limited_run(problem, *, particles=1000, replicas=4, seed=0, **settings):
            settings |= {"particles": min(particles, PARTICLES), "replicas": replicas, "seed": seed}
            parameters = view(problem).parameters
            if not parameters or "checkpoint" in settings:  # a resumed run has to be run
                return run(problem, **settings)
            request = run.__name__, repr(parameters), repr(sorted(settings.items()))
            if request not in LADDERS:
                LADDERS[request] = run(problem, **settings)
            return LADDERS[request]

        return limited_run

    coexistence = workflows.coexistence
    monkeypatch.setattr(workflows, "coexistence", lambda **given: coexistence(**CHAINS | given))
    monkeypatch.setattr(qp, "quench", limited(qp.quench))
    monkeypatch.setattr(qp, "temper", limited(qp.temper))
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
