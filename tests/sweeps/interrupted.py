"""`python -m tests.sweeps.interrupted FOLDER`: a sweep on two processes that Ctrl-C stops midway, and again.

The signal goes to the whole process group, workers among it, as a terminal sends it. Printed as JSON: how many rows
had come, the files that were kept, and the table of the second sweep in this process and folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import workbench as wb
from workbench.sweeps import run as running

GRID = {"batch_size": [2, 3, 4, 5], "hidden": [32, 64]}
STOPPED_AT = 3


def sweep(folder: str | None, heard: Any) -> Any:
    """The same points wherever they are compiled."""
    target = wb.target("ipu2", tiles_per_ipu=8)
    return wb.sweep("mlp", GRID, mode="training", target=target, folder=folder, progress=heard)


def main() -> None:
    running.WORTH_SECONDS = 0.0
    running.workers = lambda: 2
    folder, rows = sys.argv[1], []

    def hear(text: str) -> None:
        rows.append(text)
        if len(rows) == STOPPED_AT:
            os.killpg(os.getpgid(0), signal.SIGINT)

    try:
        sweep(folder, hear)
    except KeyboardInterrupt:
        stopped = len(rows)
        kept = sorted(os.listdir(folder))
        again = sweep(folder, lambda text: None)
        told = {"stopped": stopped, "kept": kept, "how": again.how, "files": sorted(os.listdir(folder))}
        print(json.dumps({**told, "rows": again.data["rows"]}))


if __name__ == "__main__":
    main()
