"""`python -m workbench` is the command `workbench`."""

from __future__ import annotations

import sys

try:
    from workbench.cli import main
except KeyboardInterrupt:  # of the command itself, as it begins
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
