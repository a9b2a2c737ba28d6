"""The control tree: what the engine writes is what its parser gives back, and what holds no tree is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder, sequence
from workbench.engine import program as engine
from workbench.engine.graph.origin import Origin
from workbench.engine.program.tree import dump
from workbench.profiler.timeline import tree
from workbench.profiler.timeline.tree import ControlTree, parse


def reread(program: engine.TileProgram) -> ControlTree:
    """The tree of a program after it was written to a file and read."""
    return parse(json.loads(json.dumps(dump(program))), steps={step.id for step in program.steps}, ipus=program.ipus)


def part_of(node: engine.Program) -> tree.Part:
    """A node of the engine in the words of a profile, without the JSON between."""
    match node:
        case engine.Step():
            return tree.Step(id=node.id)
        case engine.Sequence():
            return tree.Sequence(name=node.name, children=tuple(map(part_of, node.children)))
        case engine.Repeat():
            return tree.Repeat(name=node.name, times=node.times, body=part_of(node.body))
        case engine.If():
            return tree.If(name=node.name, arms=tuple(map(part_of, node.arms)))
        case engine.Overlap():
            return tree.Overlap(name=node.name, phase=node.phase, branches=tuple(map(part_of, node.branches)))
    return tree.Call(
        function=node.function,
        name=node.name,
        ipu=node.ipu,
        stage=node.stage,
        direction=node.direction,
        micro_batch=node.micro_batch,
        layer=node.origin.layer,
        operator=node.operator,
    )


def tree_of(program: engine.TileProgram) -> ControlTree:
    functions = {name: part_of(body) for name, body in program.functions.items()}
    return ControlTree(entry=part_of(program.entry), functions=functions)


def every_kind() -> engine.TileProgram:
    """A program with every kind of node, and calls of every form."""
    b = Builder(ipus=2)
    b.functions["forward"] = sequence(b.compute(20, ipu=0), b.sync(ipu=0))
    b.functions["backward"] = b.compute(70, ipu=1)
    b.functions["dense"] = b.compute(5, ipu=0)
    b.functions["unused"] = b.compute(5, ipu=1)
    forward = engine.Call(function="forward", name="stage0_forward", ipu=0, stage=0, direction="forward", micro_batch=3)
    backward = engine.Call(function="backward", ipu=1, stage=1, direction="backward", micro_batch=0)
    column = engine.Overlap(branches=(forward, sequence(backward)), name="column", phase="drain")
    layer = Origin(layer="dense_1", direction="recompute")
    of_layer = engine.Call(function="dense", origin=layer)
    of_operator = engine.Call(function="dense", origin=layer, operator="dense_1/matmul", direction="recompute")
    alone = engine.Call(function="dense", operator="matmul")
    either = engine.If(arms=(of_layer, sequence(of_operator, alone)), name="either")
    return b.program(
        engine.Repeat(times=4, body=sequence(column, engine.Call(function="dense")), name="columns"), either, b.sync()
    )


def test_what_is_written_is_what_is_read(golden: Callable[[str, str], None]) -> None:
    program = every_kind()
    assert reread(program) == tree_of(program)
    written = dump(program)
    lines = [
        json.dumps(written["entry"]),
        *(f"{name}: {json.dumps(each)}" for name, each in written["functions"].items()),
    ]
    golden("profiler/control_tree.txt", "\n".join([*lines, "", str(reread(program))]))


@given(programs())
def test_trees_of_random_programs_come_back(program: engine.TileProgram) -> None:
    found = reread(program)
    assert found == tree_of(program)
    assert list(found.functions) == list(program.functions)


def entry(node: Any, **functions: Any) -> ControlTree:
    """The tree of an entry, in a program of steps 0 to 2 on two IPUs."""
    return parse({"entry": node, "functions": functions}, steps={0, 1, 2}, ipus=2)


CALL = ["call", "f", "f", 1, 0, "forward", 5]


def test_calls_of_every_length() -> None:
    whole = tree.Call("f", "f", 1, 0, "forward", 5, "dense", "dense/matmul")
    for length, layer, operator in ((7, "", ""), (8, "dense", ""), (9, "dense", "dense/matmul")):
        node = [*CALL, "dense", "dense/matmul"][:length]
        assert entry(node, f=["step", 2]).entry == whole._replace(layer=layer, operator=operator)


@pytest.mark.parametrize(
    "node",
    [
        ["step"],
        ["step", 3],
        ["step", True],
        ["step", 1.0],
        ["step", 0, 0],
        ["sequence", ["step", 0], []],
        ["sequence", None, []],
        ["sequence", "", {}],
        ["repeat", "", -1, ["step", 0]],
        ["repeat", "", 1 << 62, ["step", 0]],
        ["repeat", "", 1],
        ["if", "", [["step", 0]], []],
        ["if", "", "arms"],
        ["overlap", "", "between", []],
        ["overlap", "", "fill", "branches"],
        CALL[:6],
        [*CALL, "layer", "operator", ""],
        [*CALL, None],
        ["call", "f", "f", 2, 0, "forward", 5],
        ["call", "f", "f", True, 0, "forward", 5],
        ["call", "f", "f", 1, -1, "forward", 5],
        ["call", "f", "f", 1, 0, "sideways", 5],
        ["call", "f", "f", 1, 0, None, 5],
        ["call", "f", "f", 1, 0, "forward", "5"],
        ["call", "f", None, 1, 0, "forward", 5],
    ],
)
def test_a_part_of_another_shape_is_refused(node: Any) -> None:
    for place in (node, ["sequence", "", [["step", 0], node]], ["overlap", "", "fill", [node]], ["if", "", [node]]):
        with pytest.raises(ValueError, match=r"^a node of the control tree has another shape$"):
            entry(place, f=["step", 0])


@pytest.mark.parametrize("node", [["loop", "", 3, ["step", 0]], [["step", 0]], [3], [None]])
def test_an_unknown_part_is_refused(node: Any) -> None:
    with pytest.raises(ValueError, match=r"^an unknown node of the control tree$"):
        entry(node)


@pytest.mark.parametrize("node", [[], None, {"kind": "step"}, "step", ("step", 0)])
def test_what_is_no_tree_is_refused(node: Any) -> None:
    with pytest.raises(ValueError, match=r"^the control tree is too deep or no tree$"):
        entry(node)


def test_a_function_that_is_missing_or_calls_itself_is_refused() -> None:
    for functions in ({}, {"f": CALL}, {"f": ["call", "g", "", None, None, "", None], "g": ["sequence", "", [CALL]]}):
        with pytest.raises(ValueError, match=r"^a function is missing or calls itself$"):
            entry(CALL, **functions)
    with pytest.raises(ValueError, match=r"^a function is missing or calls itself$"):
        entry(["step", 0], unused=["call", "gone", "", None, None, "", None])


def test_a_tree_deeper_than_any_programs_is_refused_by_calls_too() -> None:
    def nested(depth: int) -> Any:
        node: Any = ["step", 0]
        for _ in range(depth):
            node = ["sequence", "", [node]]
        return node

    assert entry(nested(tree.DEEPEST)).entry
    with pytest.raises(ValueError, match=r"^the control tree is too deep or no tree$"):
        entry(nested(tree.DEEPEST + 1))
    chain = {f"f{k}": ["call", f"f{k + 1}", "", None, None, "", None] for k in range(tree.DEEPEST)}
    with pytest.raises(ValueError, match=r"^the control tree is too deep or no tree$"):
        entry(["call", "f0", "", None, None, "", None], **chain, **{f"f{tree.DEEPEST}": ["step", 0]})


def test_each_body_is_read_once() -> None:
    """Thirty bodies that each call the next twice are a tree of a billion calls."""
    twice = {f"f{k}": ["sequence", "", [["call", f"f{k + 1}", "", None, None, "", None]] * 2] for k in range(30)}
    found = entry(["call", "f0", "", None, None, "", None], **twice, f30=["step", 0])
    assert len(found.functions) == 31


@pytest.mark.parametrize(("place", "value"), [(3, True), (3, 1.0), (4, True), (6, True), (6, -1), (6, [0])])
def test_a_call_like_one_that_was_read_is_looked_at_too(place: int, value: Any) -> None:
    """Equal calls are checked once; what is equal to a number and of another type is another call."""
    call = ["call", "body", "body", 1, 1, "forward", 0]
    other = [*call[:place], value, *call[place + 1 :]]
    steps: list[Any] = ["sequence", "main", [call, other]]
    with pytest.raises(ValueError, match="another shape"):
        parse({"entry": steps, "functions": {"body": ["step", 0]}}, steps={0}, ipus=2)


def test_calls_that_differ_by_micro_batch_keep_theirs() -> None:
    calls = [["call", "body", "body", 1, 1, "forward", number] for number in (0, None, 3, 0)]
    found = parse({"entry": ["sequence", "main", calls], "functions": {"body": ["step", 0]}}, steps={0}, ipus=2)
    assert [call.micro_batch for call in tree.children(found.entry) if isinstance(call, tree.Call)] == [0, None, 3, 0]
