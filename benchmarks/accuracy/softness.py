"""How does too large a softness show?  phi^6 at L = 8 from right to lost: the largest r and memory, and the answer.

python benchmarks/accuracy/softness.py
"""

from __future__ import annotations

import lattices
import observables
import quenchphys as qp
from quenchphys.samplers.softness import curvature, softest


def main() -> None:
    print("   nu   largest r   memory of U   allowed   mu2* (2.2948)")
    for nu in (8.0, 30.0, 100.0, 300.0):
        ladder = qp.quench(lattices.phi6(L=8, mu2=2.2948), particles=400, replicas=4, softness=nu)
        found, point = curvature(ladder), observables.equal_weight(ladder)
        print(
            f"{nu:5g} {found.ratio.max():11.2f} {found.correlation.max():13.2f} {softest(ladder):9.1f}   "
            f"{point.mu2.item():.4f} +- {point.mu2_err.item():.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
