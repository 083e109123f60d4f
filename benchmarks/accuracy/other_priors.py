"""Does log Z depend on the prior?  It must not, up to the prior's own normalisation, which is known exactly.

    python benchmarks/accuracy/other_priors.py           a minute on two cores

phi^6 at L = 8 with free fields of several masses m0^2 as priors: U changes with them, and with it the energies that walkers
must reach to meet draws from the prior.  log Z of the disordered phase at coexistence, moved to m0^2 = 1 by

    1/2 sum_k log[(2 khat^2 + 1)/(2 khat^2 + m0^2)],

must be the same for all.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import lattices
import workflows

L, BRACKET = 8, (2.25, 2.33)
MASSES = (0.3, 1.0, 3.0, 8.0)


def moved(m0_sq: float) -> float:
    khat_sq = 4 * np.sin(np.pi * np.arange(L) / L) ** 2
    stiff = 2 * np.add.outer(khat_sq, khat_sq)
    return 0.5 * float(np.sum(np.log((stiff + 1) / (stiff + m0_sq))))


def main() -> None:
    rows = []
    print("m0^2    mu2*                    log Z as run           log Z at m0^2 = 1      meetings with the prior")
    for m0_sq in MASSES:

        def model(L: int, mu2: float, m0_sq: float = m0_sq):
            return lattices.phi6(L=L, mu2=mu2, m0_sq=m0_sq)

        found = workflows.coexistence(L, BRACKET, model=model, progress=False)
        log_z, error = float(found.log_z[0]), float(found.log_z_err[0])
        rows.append({"m0_sq": m0_sq, "mu2": float(found.mu2), "mu2_err": float(found.mu2_err), "log_z": log_z})
        rows[-1] |= {"log_z_err": error, "moved": log_z + moved(m0_sq), "trusted": bool(found.trusted)}
        print(
            f"{m0_sq:4g}    {float(found.mu2):.5f} +- {float(found.mu2_err):.5f}    {log_z:8.4f} +- {error:.4f}    "
            f"{log_z + moved(m0_sq):8.4f} +- {error:.4f}    {float(found.meetings.sum()):8.0f}",
            flush=True,
        )
    Path("out").mkdir(exist_ok=True)
    Path("out/other_priors.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
