"""Thirty kernels that run a lesson of tiles on one machine: what each has for itself, and what all share once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT

KERNELS = 30
MOST_BYTES = 5e9
LESSON = """
import json, sys
from pathlib import Path
import ipykernel.kernelapp
import nbformat
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in nbformat.read(sys.argv[1], 4).cells:
    if cell.cell_type == "code":
        shell.run_cell(cell.source).raise_error()
said = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
kib = {line.split(":")[0]: int(line.split()[1]) for line in said}
own = (kib["Private_Clean"] + kib["Private_Dirty"]) * 1024
print("\\n" + json.dumps({"own": own, "shared": kib["Rss"] * 1024 - own}))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="the kernel tells what a process shares: Linux"
)
def test_thirty_kernels_of_the_tiles_lesson_fit_in_five_gigabytes() -> None:
    lesson = ROOT / "notebooks" / "01-tiles-and-steps.ipynb"
    command = [sys.executable, "-c", LESSON, str(lesson)]
    made = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    found = json.loads(made.stdout.splitlines()[-1])
    assert KERNELS * found["own"] + found["shared"] < MOST_BYTES, found
