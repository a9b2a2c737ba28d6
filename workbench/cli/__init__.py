"""The `workbench` command, for terminals and for pipelines that read exit codes.

`main` is the whole of it. What compiles a model runs the user's code, and does so in a process of its own
(`judged.py`): the command believes a verdict that this process wrote down, and never the way in which it ended.
May import all of the workbench. Tests: tests/cli/.
"""

from __future__ import annotations

import sys
from pathlib import PurePath

try:
    from workbench.cli.main import main
except KeyboardInterrupt:
    # Of the command itself, as it begins: `python -m` while it imports this package, or the script of this name.
    if sys.argv[0] == "-m" or PurePath(sys.argv[0]).stem == "workbench":
        sys.exit(130)
    raise

__all__ = ["main"]
