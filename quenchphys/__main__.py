"""`python -m quenchphys`: the same as the command `quenchphys`."""

import sys

try:
    from workflows.command_line import main
except ImportError as cause:
    sys.exit(f"quenchphys: {cause}.  Is a file of your own called workflows.py in the way?")

sys.exit(main())
