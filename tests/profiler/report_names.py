"""Every report's name, as the folder of reports has it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "workbench" / "profiler" / "reports"
REPORTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
