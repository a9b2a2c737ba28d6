"""The `workbench` command, for terminals and for pipelines that read exit codes.

`main` is the whole of it. What compiles a model runs the user's code, and does so in a process of its own
(`judged.py`): the command believes a verdict that this process wrote down, and never the way in which it ended.
May import all of the workbench. Tests: tests/cli/.
"""

from __future__ import annotations

from workbench.cli.main import main

__all__ = ["main"]
