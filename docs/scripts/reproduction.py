"""The page docs/reproduction.md: every table and figure of the paper that was repeated, with the newest results of a folder.

    quenchphys reproduce analytic --effort standard --out out/analytic-standard.nc        and so on
    python docs/scripts/reproduction.py out

Of each experiment the result of the greatest effort in the folder is shown; one that is not there is left out of the page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import workflows
from workflows.reproduction import experiments
from workflows.reproduction.experiment import Effort
from workflows.results import save_figure, summary

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "analytic": "reproduction_analytic",
    "networks": "reproduction_networks",
    "bayes-factors": "reproduction_bayes_factors",
    "phi6": "reproduction_phi6",
    "mobility": "reproduction_mobility",
    "path-length": "reproduction_path_length",
    "budget": "reproduction_budget",
    "sketch": "reproduction_sketch",
    "scaling": "reproduction_scaling",
    "marginal": "reproduction_marginal",
    "barrier": "reproduction_barrier",
    "configurations": "reproduction_configurations",
    "softness": "reproduction_softness",
    "cadence": "reproduction_cadence",
    "radial": "reproduction_radial",
}
HEAD = """# The paper, repeated

Every table and figure of D. Yallup, *Quenched Ensemble Sampling*, by one command each: `quenchphys reproduce NAME`, with
`--effort quick` (minutes), `standard` (within an hour on two cores) or `paper` (its settings, particles and seeds);
`quenchphys reproduce --list` shows what there is, what it needs and how long it takes. From Python the same is
`workflows.reproduce("path-length", effort="quick")`.

In the tables, *paper* is the printed value with the standard error that follows from its scatter over seeds and its
rounding, *ours* is our value with its error, *z* is the deviation between the two in combined errors, and *z exact* the
deviation from what the method should give where that is known. Numbers without an error are shown and not judged. *QES* and
*SMC* have the paper's settings, *QES, auto* is the same problem with `softness="auto"` and default settings. The last line
of a table says whether anything deviates by more than three errors; [Deviations](#deviations) at the end says why.

The page is written by `docs/scripts/reproduction.py`.
"""
TAIL = r"""## Deviations

**Lengths of paths.** Our ladders begin at the first level that ten times as many prior draws support, which saves seven
or eight stages of tempering and about ten levels of QES. The remaining levels of QES are 3 to 8% fewer than printed; the
local theory, $2\sqrt{\pi\,\mathrm{Var}(E)}/d$ with the drop $d$ that the target ESS allows to a population in equilibrium,
gives 646 levels that carry weight at $D=10^4$, and the paper prints 674.9. A population that lags behind its level has less
slack, so its levels are closer together.

**Mobility at the wall.** The printed rates, 0.13 to 0.37 of the proposals of a particle near the wall, are not those
of MALA at an acceptance of 0.57. Its drift grows as $1/s$, so that from a slack below a fifth of the mean it
overshoots, and the way back is improbable. Our ladders accept about one in a hundred proposals of such a particle in
2 to 5 dimensions, and exact draws from a level of the Gaussian (no ladder, a few lines of NumPy, acceptance tuned to
0.57) give 0.000, 0.000, 0.026, 0.064 and 0.044 in 2, 3, 5, 10 and 50 dimensions. Such particles are a few in a
hundred, and the next level removes those that stay. How the paper counted is not said in enough detail to decide
where the difference lies.

**Evidence of phi6.** At the printed $\mu^2=2.28347$ the ordered phase has more weight than the paper finds: equal
weight lies at 2.28396(3) by multicanonical chains, so the share of the ordered phase is 0.66, not 0.543, and $\log
Z=-53.45$, not -53.76. QES at softness 2 lags in the mixed region, which the scatter over seeds does not show; see
[first-order transitions](theory/first_order.md).
"""


def newest(folder: Path, name: str) -> Path | None:
    """The result of the greatest effort."""
    files = [folder / f"{name}-{effort.value}.nc" for effort in reversed(Effort)]
    return next((file for file in files if file.exists()), None)


def section(file: Path) -> str:
    """Heading, table and figure of one result."""
    result = workflows.load_result(file)
    name, effort = result.attrs["experiment"], result.attrs["effort"]
    picture = save_figure(result, ROOT / "docs" / "figures" / f"{FIGURES[name]}.png")
    _, *table = summary(result).splitlines()
    shows = experiments()[name].shows
    return (
        f"## {name}\n\n`{experiments()[name].label}` of the paper; `quenchphys reproduce {name} --effort {effort}`\n\n"
        "```text\n" + "\n".join(table) + "\n```\n\n" + f"![{shows}](figures/{picture.name})\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "out")
    folder = parser.parse_args().folder
    found = [file for name in FIGURES if (file := newest(folder, name)) is not None]
    text = "\n".join([HEAD, *(section(file) for file in found), TAIL])
    (ROOT / "docs" / "reproduction.md").write_text(text)
    print(f"docs/reproduction.md: {', '.join(file.stem for file in found)}")


if __name__ == "__main__":
    main()
