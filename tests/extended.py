"""A copy of the package with files added to it, and scripts run with it: what one file in its folder does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def extended(folder: Path, files: Mapping[str, str]) -> Path:
    """`folder`, which holds a copy of the package with these files by their paths in it; none may be there already."""
    shutil.copytree(ROOT / "workbench", folder / "workbench")
    for path, text in files.items():
        added = folder / "workbench" / path
        assert not added.exists(), path
        added.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, script: str, *arguments: str) -> list[str]:
    """Lines that a script prints with that copy, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-W", "error:::workbench", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
