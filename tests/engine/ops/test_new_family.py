"""Adding an operator touches one file: a family dropped into the folder compiles, is profiled, and is in the table."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import workbench.engine.ops

FAMILY = '''
"""Hypotenuse: the root of a sum of squares, element by element."""

from workbench.engine.emit import vertex_groups
from workbench.engine.ops import Family, register
from workbench.engine.vertices import codelet


@codelet(
    "mine::Hypotenuse", kind="worker", source="counted by hand", formula="10 + 4*elements",
    state_bytes=lambda **_: 16, code_bytes=64, flops=lambda *, elements, **_: 4 * elements,
)
def hypotenuse(*, elements: int) -> int:
    return 10 + 4 * elements


class Hypotenuse(Family):
    name = "hypotenuse"
    ops = frozenset({"hypot_of_mine"})

    def flops(self, node, lowering):
        return 4 * node.results[0].elements

    def lower(self, node, lowering):
        label, value = lowering.label(node), node.results[0]
        mapping = lowering.wish(value) or lowering.default_mapping(value)
        held = lowering.emit.rearrange(label, [(tensor, mapping) for tensor in lowering.operands(node)])
        result = lowering.result(node, 0, mapping)
        groups = vertex_groups("mine::Hypotenuse", {"elements": mapping.elements_per_tile(lowering.tiles)})
        lowering.emit.compute(label, groups, [name for each in held for name in each.variables], result.variables)


register(Hypotenuse())
'''

SCRIPT = """
import sys
import workbench as wb
import workbench.engine.ops as ops

ops.__path__.append(sys.argv[1])  # as if the file lay in the folder

import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

hypot = Primitive("hypot_of_mine")
hypot.def_abstract_eval(lambda x, y: x)
mlir.register_lowering(hypot, mlir.lower_fun(lambda x, y: jnp.sqrt(x * x + y * y), multiple_results=False))

shape = jax.ShapeDtypeStruct((640,), "float32")
found = wb.compile(lambda x, y: hypot.bind(x, y), shape, shape, target=wb.target("ipu2", tiles_per_ipu=4))
profile = found.profile
row = profile.operators.iloc[0]
print("operator", row.op, row.flops, len(profile.unmodelled))
print("family", ops.families.get("hypotenuse").name, sorted(ops.families.get("hypotenuse").ops))
(step,) = [step for step in profile.steps.itertuples() if "hypot" in step.name and step.kind == "OnTileExecute"]
print("cycles", step.cycles)
print("explained", "mine::Hypotenuse" in str(profile.explain(step=step.id)))
print("value", float(found.run(jnp.full(640, 3.0), jnp.full(640, 4.0))[0]))
"""


def test_a_family_of_one_file_compiles_is_profiled_and_is_in_the_table(tmp_path: Path) -> None:
    """In a process of its own, so that the registry of the others stays as it is.

    640 elements on 4 tiles are 160 each: 10 + 4 * 160 = 650 worker cycles, 6 tile cycles each, and 80 to launch.
    """
    (tmp_path / "hypotenuse.py").write_text(FAMILY)
    root = Path(workbench.engine.ops.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)],
        cwd=root,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said["operator"] == "hypot_of_mine 2560 0"
    assert said["family"] == "hypotenuse ['hypot_of_mine']"
    assert said["value"] == "5.0"
    assert said["explained"] == "True"
    assert int(said["cycles"]) == 6 * 650 + 80


TRAITS = """    name = "hypotenuse"
    called = "hypotenuse of mine"
    before = ("elementwise",)
    outlined = True
    alone = True
    pointwise = True
    shareable = True
"""

TRAITS_SCRIPT = """
import sys
import workbench as wb
import workbench.engine.ops as ops

ops.__path__.append(sys.argv[1])

from tests.engine.small_graphs import Draft
from workbench.engine.compile import compile_graph
from workbench.engine.graph import Node, Value
from workbench.engine.lower.layout import hand_across
from workbench.engine.lower.outline.runs import RunFinder
from workbench.engine.mapping import linear
from workbench.engine.options import Options
from workbench.engine.passes.recognise import recognise
from workbench.engine.target import target

d = Draft()
x, y = d.param("x", (640,)), d.param("y", (640,))
z = d.point("exp", y)
made = [d.node("hypot_of_mine", pair, (640,), "float32") for pair in ((x, y), (y, x), (x, z))]
graph = d.graph(*made)
compiled = compile_graph(graph, target("ipu2", tiles_per_ipu=4), Options())
rows = [row for row in compiled.lowered.operators if row.op == "hypotenuse of mine"]
print("called", len(rows))
print("outlined", *{row.body for row in rows})
print("shareable", len(RunFinder(graph, graph.body, {}).classes()[0].runs))

d = Draft()
with d.at(layer="a", region="softmax"):
    x = d.param("x", (640,))
    last = d.point("exp", d.node("hypot_of_mine", (d.point("exp", x), x), (640,), "float32"))
print("alone", *[node.op for node in recognise(d.graph(last)).body.nodes])

d = Draft()
w, g = d.weight("a/w", (640,)), d.param("g", (640,))
with d.at(layer="a", direction="update"):
    d.node("hypot_of_mine", (w, g), (640,), "float32")
wishes = {w: linear((640,), "float32", 4, vector_bytes=8)}
hand_across(d.b.nodes[-1], wishes)
print("pointwise", wishes.get(g) == wishes[w])

angle = Node("atan2", (w, g), (Value(2, (640,), "float32"),))
print("before", ops.family_of(angle).name, ops.family_of(Node("add", angle.operands, angle.results)).name)
"""


def test_what_a_family_says_of_itself_is_seen_where_it_counts(tmp_path: Path) -> None:
    told = FAMILY.replace('    name = "hypotenuse"\n', TRAITS).replace('"hypot_of_mine"}', '"hypot_of_mine", "atan2"}')
    (tmp_path / "hypotenuse.py").write_text(told)
    root = Path(workbench.engine.ops.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TRAITS_SCRIPT), str(tmp_path)],
        cwd=root,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said == {
        "called": "3",
        "outlined": "shared0_hypotenuse of mine",
        "shareable": "3",
        "alone": "exp hypot_of_mine exp",
        "pointwise": "True",
        "before": "hypotenuse elementwise",
    }
