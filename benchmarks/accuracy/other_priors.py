"""log Z of phi^6 from priors of several masses: the same, up to the normalisation of the prior, which is known exactly.

    python -m benchmarks.accuracy.other_priors           a minute on two cores

phi^6 at L = 8 with free fields of several masses m0^2 as priors: U changes with them, and with it the energies that chains
must reach to meet draws from the prior.  log Z of the disordered phase at coexistence, moved to m0^2 = 1 by

    1/2 sum_k log[(2 khat^2 + 1)/(2 khat^2 + m0^2)],

must be the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lattices
import workflows
from benchmarks import harness

L, BRACKET = 8, (2.25, 2.33)
MASSES = (0.3, 1.0, 3.0, 8.0)


def moved(m0_sq: float) -> float:
    """What must be added to log Z against a prior of this mass, to have it against one of mass 1."""
    khat_sq = 4 * np.sin(np.pi * np.arange(L) / L) ** 2
    stiff = 2 * np.add.outer(khat_sq, khat_sq)
    return 0.5 * float(np.sum(np.log((stiff + 1) / (stiff + m0_sq))))


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    columns = {"m0^2": "g", "mu2*": ".5f", "error": ".5f", "log Z as run": ".4f", "log Z at m0^2 = 1": ".4f"}
    table = harness.Table(columns | {"error of log Z": ".4f", "meetings with the prior": ".0f", "trusted": "5s"})
    for m0_sq in MASSES:

        def model(L: int, mu2: float, m0_sq: float = m0_sq):
            return lattices.phi6(L=L, mu2=mu2, m0_sq=m0_sq)

        found = workflows.coexistence(L, BRACKET, model=model, progress=False)
        log_z, error = float(found.log_z[0]), float(found.log_z_err[0])
        meetings, trusted = float(found.meetings.sum()), "yes" if found.trusted else "no"
        point = float(found.mu2), float(found.mu2_err)
        table.add(m0_sq, *point, log_z, log_z + moved(m0_sq), error, meetings, trusted)
    harness.save("other_priors", table.rows)


if __name__ == "__main__":
    main()
