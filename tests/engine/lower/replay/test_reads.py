"""What is noted of a lowering while a body is recorded, and what asking again answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.engine.small_graphs import Draft
from workbench.engine import target as targets
from workbench.engine.emit import Emitter
from workbench.engine.emit.variables import NumberedVariables
from workbench.engine.graph import Function, Graph, Value
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.replay.form import Form, form_of
from workbench.engine.lower.replay.reads import Reads, check_fields, reading
from workbench.engine.mapping import Mapping, linear
from workbench.engine.options import Options
from workbench.errors import VerificationError

SHAPE = (64, 8)
PROPORTION = "matmuls.poplar_options.availableMemoryProportion"


def lying(first: int) -> Mapping:
    """Eight tiles from tile `first` on."""
    return linear(SHAPE, "float32", 8, 128, first, vector_bytes=8)


@dataclass
class Body:
    """A body of one node, whose parameters lie on eight tiles from tile `first`."""

    options: Options = field(default_factory=Options)
    first: int = 0
    meta: int = 1

    def __post_init__(self) -> None:
        draft = Draft()
        self.x, self.y = draft.param("x", SHAPE), draft.param("y", SHAPE)
        self.sum = draft.point("add", self.x, self.y)
        graph = draft.graph(self.sum)
        self.graph = Graph(graph.functions, graph.entry, graph.inputs, graph.outputs, meta={"replicas": self.meta})
        target = targets.target("ipu2", tiles_per_ipu=8)
        self.lowering = Driver(graph=self.graph, target=target, options=self.options, emit=Emitter(target=target))
        self.lowering.emit.new("before", SHAPE, "float32", lying(0), "activation")
        for value, kind in ((self.x, "input"), (self.y, "constant")):
            mapping = lying(self.first)
            made: Any = self.lowering.emit.tensor("param", SHAPE, "float32", mapping, kind)  # type: ignore[arg-type]
            self.lowering.bind(value, made)
        self.form: Form = form_of(self.graph, self.function)

    @property
    def function(self) -> Function:
        return self.graph.body

    def read(self, ask: Callable[[Body], Any]) -> Reads:
        with reading(self.lowering, self.form) as reads:
            ask(self)
        return reads


def asks_where(body: Body) -> Any:
    return body.lowering.get(body.x)


def asks_wish(body: Body) -> Any:
    return body.lowering.wish(body.sum)


def asks_option(body: Body) -> Any:
    return body.lowering.options.get(PROPORTION)


def asks_meta(body: Body) -> Any:
    return body.lowering.graph.meta.get("replicas")


def asks_kind(body: Body) -> Any:
    return body.lowering.emit.variables[body.lowering.get(body.y).variables[0]].kind


def asks_tile(body: Body) -> Any:
    return body.lowering.default_mapping(body.sum)


def asks_reuse(body: Body) -> Any:
    return body.lowering.reusable(body.sum)


def wishing(body: Body) -> Body:
    body.lowering.wishes = {body.sum: lying(3)}
    return body


def reusing(body: Body) -> Body:
    body.lowering.reuse = {body.sum: body.y}
    return body


def mapped_on(body: Body) -> Body:
    body.lowering.next_tile[0] = 4
    return body


def of_another_kind(body: Body) -> Body:
    body.lowering.emit.variables.pop()
    mapping = lying(0)
    body.lowering.bind(body.y, body.lowering.emit.tensor("param", SHAPE, "float32", mapping, "state"))
    return body


CHANGES: dict[str, tuple[Callable[[Body], Any], Callable[[], Body]]] = {
    "place": (asks_where, lambda: Body(first=3)),
    "wish": (asks_wish, lambda: wishing(Body())),
    "option": (asks_option, lambda: Body(options=Options().with_values({PROPORTION: 0.1}))),
    "said of the graph": (asks_meta, lambda: Body(meta=2)),
    "kind of a variable": (asks_kind, lambda: of_another_kind(Body())),
    "next tile": (asks_tile, lambda: mapped_on(Body())),
    "memory to take": (asks_reuse, lambda: reusing(Body())),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_read_must_be_as_it_was_and_nothing_else(what: str) -> None:
    ask, change = CHANGES[what]
    reads, same, other = Body().read(ask), Body(), change()
    assert reads.why_not == ""
    assert reads.again(same.lowering, same.form) is not None
    assert reads.again(other.lowering, other.form) is None
    for name, (silent, _) in CHANGES.items():
        if name not in (what, "kind of a variable"):  # which asks where the value is, too
            assert Body().read(silent).again(other.lowering, other.form) is not None, name


def test_variables_are_those_in_the_place_of_what_was_read() -> None:
    """The second parameter lies in variable 2; of another lowering in whatever variable it has there."""
    reads = Body().read(lambda body: body.lowering.get(body.y))
    assert reads.variables == (2,)
    other = Body()
    moved = other.lowering.emit.tensor("param", SHAPE, "float32", lying(0), "constant")
    other.lowering.bind(other.y, moved)
    assert reads.again(other.lowering, other.form) == (3,)


def test_what_a_body_writes_is_its_own() -> None:
    def work(body: Body) -> None:
        body.lowering.bind(body.sum, body.lowering.get(body.x))
        body.lowering.get(body.sum)
        body.lowering.names["x"] = 1

    body = Body()
    reads = body.read(work)
    assert len(reads.notes) == 1
    assert body.lowering.has(body.sum)
    assert body.lowering.names == {"x": 1}


def test_what_a_body_takes_back_was_there_before_it() -> None:
    """A parameter that is bound elsewhere for a try is read as it was, once that is undone."""

    def work(body: Body) -> None:
        back = body.lowering.marked()
        body.lowering.bind(body.x, body.lowering.emit.tensor("try", SHAPE, "float32", mapping, "temporary"))
        back()
        body.lowering.get(body.x)

    mapping = lying(5)
    reads = Body().read(work)
    other = Body(first=3)
    assert reads.why_not == ""
    assert reads.again(other.lowering, other.form) is None


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda body: list(body.lowering.wishes), "'wishes' was read whole"),
        (lambda body: list(body.lowering.emit.variables), "'variables' was read whole"),
        (lambda body: body.lowering.emit.variables[0].name, "a variable was asked for its 'name' that no value is in"),
        (lambda body: body.lowering.graph.inputs, "'graph' was asked for its inputs"),
        (lambda body: body.lowering.graph.functions["other"], "'graph' was asked for @other, which the body does not"),
        (lambda body: body.lowering.destinations.update({1: body.lowering.get(body.x)}), "'destinations' was written"),
    ],
)
def test_what_cannot_be_asked_again_keeps_no_body(ask: Callable[[Body], Any], why: str) -> None:
    body = Body()
    graph = body.graph
    body.lowering.graph = Graph(
        {**graph.functions, "other": graph.body}, graph.entry, graph.inputs, graph.outputs, meta=graph.meta
    )
    reads = body.read(ask)
    assert reads.why_not.startswith(why)


def test_views_are_gone_afterwards_whatever_happens() -> None:
    body = Body()
    before = [getattr(body.lowering, name) for name in ("graph", "options", "wishes", "names", "plans")]
    with pytest.raises(KeyboardInterrupt), reading(body.lowering, body.form):
        raise KeyboardInterrupt
    after = [getattr(body.lowering, name) for name in ("graph", "options", "wishes", "names", "plans")]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert type(body.lowering.emit.variables) is NumberedVariables


@dataclass(slots=True)
class Hinted(Driver):
    """A lowering of which families could read one thing more."""

    hints: dict[Value, int] = field(default_factory=dict)


def test_a_field_that_nothing_notes_is_an_error() -> None:
    """So that no family can begin to read what bodies are not told apart by."""
    body = Body()
    check_fields(body.lowering)
    hinted = Hinted(graph=body.graph, target=body.lowering.target, options=Options(), emit=body.lowering.emit)
    with (
        pytest.raises(VerificationError, match="'hints' of the lowering is read by bodies of stages, and nothing"),
        reading(hinted, body.form),
    ):
        pass


def test_arrays_are_compared_by_what_is_in_them() -> None:
    def asks_bytes(body: Body) -> Any:
        return body.lowering.emit.variables[body.lowering.get(body.y).variables[0]].bytes_per_tile

    reads, same = Body().read(asks_bytes), Body()
    assert reads.again(same.lowering, same.form) is not None
    ((_, _, answer),) = reads.of_variables
    assert np.array_equal(answer, np.full(8, 64 * 8 * 4 // 8))
