"""What does a person see while a study runs?"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Narrator:
    """Says on standard error what happens; `progress` None: if that is a terminal."""

    progress: bool | None = None

    def say(self, text: str) -> None:
        if self.progress or (self.progress is None and sys.stderr.isatty()):
            print(text, file=sys.stderr, flush=True)
