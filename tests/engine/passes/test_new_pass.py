"""Adding a pass is its file and its line with the reason: seen in a copy of the package to which both are added."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import workbench

PASS = '''
"""Twice: what is negated twice is as it was."""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph import Function, Graph
from workbench.engine.graph.rewriting import read_nodes


def twice_negated(graph: Graph) -> Graph:
    """Let who reads a negation of a negation read what was negated."""
    return replace(graph, functions={name: _rewritten(each) for name, each in graph.functions.items()})


def _rewritten(function: Function) -> Function:
    negated = {node.results[0]: node.operands[0] for node in function.nodes if node.op == "neg"}
    stands_for = {new: negated[old] for new, old in negated.items() if old in negated}
    nodes = tuple(node.reading(tuple(stands_for.get(v, v) for v in node.operands)) for node in function.nodes)
    results = tuple(stands_for.get(value, value) for value in function.results)
    return Function(function.name, function.params, results, tuple(read_nodes(nodes, results)))
'''
IMPORT = "from workbench.engine.passes.twice_negated import twice_negated\n"
LINE = """    GraphPass(
        name="twice_negated", run=twice_negated, per_function=True,
        reason="after equal things are one, before negations join a chain",
    ),
"""
SCRIPT = """
import sys
import jax.numpy as jnp
import workbench as wb

print("from", wb.__file__)
found = wb.compile(lambda x: jnp.exp(-(-x)), jnp.ones(8, "float32"), target=wb.target("ipu2", tiles_per_ipu=4))
(row,) = [row for row in found.passes.itertuples() if row.phase == "twice_negated"]
print("changed", row.changed)
print("operators", ",".join(found.profile.operators.op))
print("value", float(found.run(jnp.ones(8, "float32"))[0]))
"""


def test_a_pass_is_its_file_and_its_line(tmp_path: Path) -> None:
    """Of exp(-(-x)) the exponential alone is left, in a chain of one."""
    copied = tmp_path / "workbench"
    shutil.copytree(Path(workbench.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "engine/passes/twice_negated.py").write_text(PASS)
    listed = copied / "engine/passes/__init__.py"
    text = listed.read_text()
    before = '    GraphPass(\n        name="simplify"'
    assert before in text
    text = text.replace("from workbench.engine.graph import", IMPORT + "from workbench.engine.graph import", 1)
    listed.write_text(text.replace(before, LINE + before, 1))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "KERAS_BACKEND": "jax", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said["from"].startswith(str(tmp_path))
    assert said["changed"] == "3 → 1 nodes"
    assert said["operators"] == "elementwise"
    assert abs(float(said["value"]) - 2.718281828) < 1e-6
