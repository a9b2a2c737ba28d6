"""Adding an option is one declaration: it is read, checked, frozen, shown in the form and in the table."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import workbench

SCRIPT = """
from workbench.engine.options.declaration import option

option(
    "optimizations.halve_everything", 1, int, "How often what a program takes is halved.",
    read_by="engine/passes/simplify.py", minimum=1, maximum=4, form_label="halvings", form_place=13,
)

import numpy as np
import workbench as wb
from tests.engine.options.test_options import row
from workbench import ipu
from workbench.engine.options import OPTIONS, form_options
from workbench.engine.passes import PIPELINE

seen = []
simplify = next(each for each in PIPELINE if each.name == "simplify")
passed = simplify.configured
object.__setattr__(simplify, "configured", lambda graph, options: (
    seen.append(options.get("optimizations.halve_everything")), passed(graph, options))[1])

config = ipu.config.IPUConfig()
print("default", config.optimizations.halve_everything)
config.optimizations.halve_everything = 3
profile = wb.profile(lambda x: x + 1, np.zeros(8, "float32"), config=config, target=wb.target("ipu2", tiles_per_ipu=4))
print("read", seen[-1])
print("frozen", profile.config["optimizations.halve_everything"])
config.optimizations.halve_everything = 4
print("kept", profile.config["optimizations.halve_everything"])
print("form", [each.form_label for each in form_options()].index("halvings"))
print("row", row(OPTIONS.get("optimizations.halve_everything")))
try:
    config.optimizations.halve_everything = 5
    wb.profile(lambda x: x + 1, np.zeros(8, "float32"), config=config)
except wb.OptionError as error:
    print("refused", str(error).splitlines()[0])
"""


def test_an_option_of_one_declaration_is_read_frozen_shown_and_listed() -> None:
    """In a process of its own, so that the table of the others stays as it is."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=Path(workbench.__file__).parents[1],
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said["default"] == "1"
    assert said["read"] == said["frozen"] == said["kept"] == "3"
    assert said["form"] == "12"
    assert said["row"] == "optimizations.halve_everything | 1 | int | modelled | engine/passes/simplify.py"
    assert said["refused"].startswith("optimizations.halve_everything is 5")
