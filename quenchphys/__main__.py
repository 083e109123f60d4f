"""`python -m quenchphys`: the same as the command `quenchphys`."""

import sys

from workflows.command import main

sys.exit(main())
