"""Signs of too large a softness: phi^6 at L = 8, the largest curvature ratio r and correlation of U, and mu2*.

    python -m benchmarks.accuracy.softness
"""

from __future__ import annotations

from collections.abc import Sequence

import lattices
import observables
import quenchphys as qp
from benchmarks import harness
from quenchphys.samplers.softness import curvature, softest


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    columns = {"nu": "5g", "largest r": ".2f", "correlation of U": ".2f", "allowed nu": ".1f", "mu2* (2.2948)": ".4f"}
    table = harness.Table(columns | {"error": ".4f"})
    for nu in (8.0, 30.0, 100.0, 300.0):
        ladder = qp.quench(lattices.phi6(L=8, mu2=2.2948), particles=400, replicas=4, softness=nu)
        found, point = curvature(ladder), observables.equal_weight(ladder)
        mu2 = point.mu2.item(), point.mu2_err.item()
        table.add(nu, float(found.ratio.max()), float(found.correlation.max()), softest(ladder), *mu2)


if __name__ == "__main__":
    main()
