"""Read the built site in Chromium with the network off: formulas drawn, pictures loaded, nothing asked for, no errors.

    make site && python docs/scripts/read_offline.py [--site site] [--pictures out/pages] [--only index validation]

Prints one line for each page, and writes a picture of it if a folder is given.  Needs `chromium` on the path.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# No name is resolved, and every page has an empty profile of its own.
OFFLINE = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run",
           "--disable-background-networking", "--virtual-time-budget=8000", "--window-size=1280,1600"]  # fmt: skip


def chromium(page: Path, *options: str) -> tuple[str, str]:
    """Standard output and the console of a page."""
    with tempfile.TemporaryDirectory() as profile:
        words = [
            shutil.which("chromium") or "chromium",
            *OFFLINE,
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
        ]
        run = subprocess.run([*words, *options, page.as_uri()], capture_output=True, text=True, timeout=180)
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, "; ".join(console)


def faults(page: Path) -> tuple[int, list[str]]:
    """Number of formulas, and what is wrong with a page."""
    shown, console = chromium(page, "--dump-dom")
    marked = shown.count('class="arithmatex"')
    drawn = len(re.findall(r'class="arithmatex"><span class="katex', shown))
    wrong = [f"the console says {console}"] if console else []
    if marked != drawn or "katex-error" in shown:
        wrong.append(f"{marked} formulas, {drawn} drawn, {shown.count('katex-error')} with errors")
    for source in re.findall(r'<img[^>]* src="([^"]+)"', shown):
        if not source.startswith("data:") and not (page.parent / source).exists():
            wrong.append(f"the picture {source} is missing")
    wrong += [
        f"{asked} comes from a network" for asked in re.findall(r'<(?:script|img)[^>]* src="(https?:[^"]+)', shown)
    ]
    return marked, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=Path("site"))
    parser.add_argument("--pictures", type=Path, help="folder for a picture of every page")
    parser.add_argument("--only", nargs="*", help="pages, such as index or theory/levels")
    chosen = parser.parse_args()
    worst = 0
    for page in sorted(chosen.site.resolve().rglob("*.html")):
        name = str(page.relative_to(chosen.site.resolve()).with_suffix(""))
        if name == "404" or (chosen.only and name not in chosen.only):  # a server shows 404 under any address
            continue
        formulas, wrong = faults(page)
        print(f"{name:32s} {formulas:4d} formulas   {'; '.join(wrong) or 'good'}", flush=True)
        worst |= bool(wrong)
        if chosen.pictures:
            chosen.pictures.mkdir(parents=True, exist_ok=True)
            chromium(
                page, f"--screenshot={chosen.pictures.resolve() / name.replace('/', '_')}.png", "--hide-scrollbars"
            )
    return worst


if __name__ == "__main__":
    sys.exit(main())
