"""What is stamped on steps and variables while a program is emitted."""

from __future__ import annotations

import pytest

from workbench.engine import target as targets
from workbench.engine.emit import Emitter
from workbench.engine.graph.origin import Origin
from workbench.engine.mapping import linear


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
