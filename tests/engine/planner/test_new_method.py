"""Adding a planner vertex touches one file: dropped into the folder it is tried, chosen when cheapest, and profiled."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import workbench.engine.planner.methods

VERTEX = '''
"""A systolic array: four rows, columns and channels at a time."""

from dataclasses import dataclass
from typing import ClassVar

from workbench.engine.cost import formula
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import Method, register
from workbench.engine.vertices import codelet


@codelet(
    "mine::Systolic", kind="supervisor", source="counted by hand", formula="CYCLES*blocks",
    state_bytes=lambda **_: 16, code_bytes=64, flops=lambda *, blocks, **_: 128 * blocks,
)
def systolic(*, blocks):
    return CYCLES * blocks


formula("plan.systolic", text="CYCLES*blocks", source="counted by hand")(systolic)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class Systolic(Method):
    vertex: ClassVar[str] = "systolic"

    @classmethod
    def variants(cls, layout, target):
        print("asked", layout.problem.kind)
        return [] if layout.problem.field else [cls(in_block=4, out_block=4, partials_type="float")]

    def blocks(self, shares):
        return shares.groups * -(-shares.positions // 4) * self.in_blocks(shares) * self.out_blocks(shares)

    def cost(self, problem, shares, rules):
        return "compute", "plan.systolic", {"blocks": self.blocks(shares)}

    def macs_per_cycle(self, in_type):
        return 64

    def groups(self, at):
        return vertex_groups("mine::Systolic", at.columns(blocks=self.blocks(at.sizes)))
'''

SCRIPT = """
import sys
import workbench as wb
import workbench.engine.planner.methods as methods

methods.__path__.append(sys.argv[1])  # as if the file lay in the folder

import numpy as np

ones = np.ones((64, 64), np.float32)
profile = wb.compile(lambda x, y: x @ y, ones, ones, target=wb.target("ipu2", tiles_per_ipu=4)).profile
row = profile.operators.iloc[0]
print("plan", row.plan)
print("counted", row.plan_cycles, row.cycles)
(step,) = [step for step in profile.steps.itertuples() if step.name.endswith("/compute")]
print("cycles", step.cycles)
print("explained", "mine::Systolic" in str(profile.explain(step=step.id)))
print("codelets", *profile.tables["codelets"]["vertex"])
"""


def said(folder: Path, cycles: int) -> dict[str, str]:
    """What the script prints, with a vertex that takes so many cycles for a block of 4 x 4 x 4."""
    (folder / "systolic.py").write_text(VERTEX.replace("CYCLES", str(cycles)))
    root = Path(workbench.engine.planner.methods.__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder)],
        cwd=root,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_a_vertex_of_one_file_is_chosen_compiled_and_profiled(tmp_path: Path) -> None:
    """In a process of its own, so that the registry of the others stays as it is.

    64 x 64 x 64 are 16 x 16 x 16 blocks: 1,024 on each of four tiles, and 80 cycles to launch.
    """
    found = said(tmp_path, 1)
    assert found["asked"] == "matmul"
    assert found["plan"].startswith("systolic 4x4 on 4 tiles: ")
    assert "compute 1024" in found["plan"]
    assert int(found["cycles"]) == 1024 + 80
    assert found["explained"] == "True"
    assert "mine::Systolic" in found["codelets"]
    planned, taken = map(int, found["counted"].split())
    assert f"; {planned} cycles (" in found["plan"]
    assert planned < taken


def test_a_dearer_vertex_is_tried_and_not_chosen(tmp_path: Path) -> None:
    found = said(tmp_path, 1000)
    assert found["asked"] == "matmul"
    assert found["plan"].startswith("amp ")
    assert "mine::Systolic" not in found["codelets"]
