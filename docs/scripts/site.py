"""Hooks of `mkdocs.yml`: the version on every page, and the changelog of the project as a page."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The version, read from the file that holds it, in the title and at the foot of every page."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "quenchphys" / "version.py").read_text())
    assert version is not None
    config.site_name = f"quenchphys {version[1]}"
    config.copyright = (
        f'quenchphys {version[1]}, MIT licence. Formulas are drawn by <a href="https://katex.org">KaTeX</a>.'
    )
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """CHANGELOG.md lies at the root of the project, where people look for it."""
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    return files
