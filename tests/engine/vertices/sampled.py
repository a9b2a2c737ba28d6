"""Arguments of every codelet of the registry: the published rows that have most cycles, else its family's samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.engine.samples import collected
from workbench.engine import vertices

ROWS = json.loads((Path(__file__).parents[2] / "data" / "vertex_cycles.json").read_text())
SAMPLES: dict[str, dict[str, Any]] = collected("vertices")  # arguments by name
for _row in sorted(ROWS, key=lambda row: -row["cycles"]):
    SAMPLES.setdefault(_row["name"], _row["args"])
NAMES = sorted(vertices.load())
