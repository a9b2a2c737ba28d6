"""What is stamped on steps and variables while a program is emitted."""

from __future__ import annotations

import pytest

from workbench.engine import target as targets
from workbench.engine.emit import Emitter
from workbench.engine.graph.origin import Origin
from workbench.engine.mapping import linear
from workbench.engine.program import OnTileExecute, Sequence, leaves
from workbench.engine.program.remote_buffers import RemoteBuffer


def test_inside_stamps_what_is_given_and_leaves_the_rest() -> None:
    emit = Emitter(target=targets.target("ipu2", tiles_per_ipu=8))
    layer = Origin(layer="dense")
    mapping = linear((8,), "float32", 8, vector_bytes=8)
    with emit.inside(ipu=2, stage=1, function="body"):
        with emit.inside(origin=layer, operator="dense/add", function=""):
            emit.sync()
            emit.new("x", (8,), "float32", mapping, "temporary")
        emit.sync()
    emit.sync()
    steps = emit.finish().children
    assert [(s.ipu, s.stage, s.origin.layer, s.operator) for s in steps] == [  # type: ignore[union-attr]
        (2, 1, "dense", "dense/add"),
        (2, 1, "", ""),
        (0, None, "", ""),
    ]
    assert (emit.variables[0].ipu, emit.variables[0].function, emit.variables[0].origin) == (2, "", layer)


def test_inside_goes_back_when_something_fails() -> None:
    emit = Emitter(target=targets.target("ipu2", tiles_per_ipu=8))
    with pytest.raises(KeyError), emit.inside(ipu=3, function="body"):
        raise KeyError
    assert (emit.ipu, emit.function) == (0, "")


def test_variables_that_are_behind_are_numbered_last() -> None:
    """What is made between them has the numbers it has without them; steps that touch them are made anew, no other."""
    emit = Emitter(target=targets.target("ipu2", tiles_per_ipu=8))
    mapping = linear((8,), "float32", 8, vector_bytes=8)

    def new(name: str, *, behind: bool = False) -> int:
        return emit.new(name, (8,), "float32", mapping, "temporary", behind=behind)

    one, waits, other, waits_too = new("one"), new("waits", behind=True), new("other"), new("waits too", behind=True)
    assert (one, other) == (0, 1)
    assert max(waits, waits_too) < -1  # -1 is a step's buffer where it has none
    assert [emit.variables[number].name for number in (one, waits, other, waits_too)] == [
        "one",
        "waits",
        "other",
        "waits too",
    ]
    groups = emit.copy_groups(mapping.bytes_per_tile(4, 8))
    with emit.body() as collected:
        emit.compute("inside", groups, [waits_too], [other])
    emit.functions["body"] = Sequence(children=tuple(collected), name="body")
    with emit.body() as collected:
        emit.compute("without", groups, [one], [other])
    (kept,) = collected
    emit.add(kept)
    emit.compute("with", groups, [one, waits], [waits_too])
    emit.settled[waits] = RemoteBuffer(variable=waits, name="waits", ipu=0, dtype="float32", shape=(8,), size_bytes=32)
    without, with_them = emit.finish().children
    assert without is kept
    assert isinstance(with_them, OnTileExecute)
    assert (with_them.reads, with_them.writes) == ((0, 2), (3,))
    (inside,) = leaves(emit.functions["body"])
    assert (inside.reads, inside.writes) == ((3,), (1,))
    assert [(variable.id, variable.name) for variable in emit.variables] == [
        (0, "one"),
        (1, "other"),
        (2, "waits"),
        (3, "waits too"),
    ]
    assert [(number, buffer.variable) for number, buffer in emit.settled.items()] == [(2, 2)]
