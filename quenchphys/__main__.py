"""`python -m quenchphys`: the same as the command `quenchphys`."""

import sys

from workflows.command_line import main

sys.exit(main())
