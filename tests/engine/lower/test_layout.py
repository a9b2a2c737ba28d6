"""Where values come to lie: weights as the forward plan reads them, slots and gradients as their weights."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.engine.small_graphs import Draft
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.graph import Graph
from workbench.engine.lower.replay import bodies as stage_bodies
from workbench.engine.options import Options
from workbench.engine.program import DoExchange, Variable
from workbench.engine.target import target


def dense_step(kind: str) -> Graph:
    """One layer's training step with momentum: forward, weight gradient, update."""
    d = Draft()
    if kind == "dense":
        w, x = d.weight("layer/kernel", (32, 48)), d.param("x", (16, 32))
        apply: Any = d.dot
    else:
        w, x = d.weight("layer/kernel", (3, 3, 8, 16)), d.param("x", (2, 8, 8, 8))
        apply = d.conv
    slot = d.param("optimizer/momentum", w.shape, "optimizer")
    rate = d.param("optimizer/rate", (), "optimizer")
    with d.at(layer="layer"):
        y = apply(x, w)
    with d.at(layer="layer", direction="backward"):
        slope = d.point("mul", y, d.constant(2.0))
        if kind == "dense":
            gradient = d.transpose(d.dot(slope, x, (0, 0)), 1, 0)
        else:
            gradient = weight_gradient(d, x, slope, w.shape)
    with d.at(layer="layer", direction="update"):
        new_slot = d.point("sub", d.point("mul", slot, d.constant(0.9)), d.point("mul", gradient, rate))
        new = d.point("add", w, new_slot)
    return d.graph(d.reduce("reduce_sum", slope, 0), updates={"layer/kernel": new, "optimizer/momentum": new_slot})


def weight_gradient(d: Draft, x: Any, slope: Any, shape: tuple[int, ...]) -> Any:
    """The convolution of the input with the output's gradient that autodiff makes of a same-padded convolution."""
    return d.node(
        "conv_general_dilated",
        (x, slope),
        shape,
        x.dtype,
        window_strides=(1, 1),
        padding=((1, 1), (1, 1)),
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        lhs_spec=(3, 0, 1, 2),
        rhs_spec=(3, 0, 1, 2),
        out_spec=(2, 3, 0, 1),
        feature_group_count=1,
        batch_group_count=1,
    )


@functools.cache
def compiled(kind: str) -> Compiled:
    return compile_graph(dense_step(kind), target("ipu2", tiles_per_ipu=16), Options())


def variable(found: Compiled, name: str) -> Variable:
    (one,) = [v for v in found.program.variables if v.name == name]
    return one


each_kind = pytest.mark.parametrize("kind", ["dense", "conv"])


@each_kind
def test_the_slot_lies_as_its_weight(kind: str) -> None:
    found = compiled(kind)
    assert variable(found, "optimizer/momentum").mapping_text == variable(found, "layer/kernel").mapping_text


def received_for_weight(found: Compiled) -> int:
    """Bytes that exchanges bring, of those that read the weight going forward."""
    weight = variable(found, "layer/kernel")
    return sum(
        int(step.exchange.received_bytes.sum())
        for step in found.program.steps
        if isinstance(step, DoExchange) and weight.id in step.reads and step.origin.direction == "forward"
    )


@each_kind
def test_the_forward_plan_decides_where_the_weight_lies(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread as the plan reads it, so that less has to move than from PopLibs' linear mapping."""
    found = compiled(kind)
    assert variable(found, "layer/kernel").mapping_text.startswith("Grid")
    monkeypatch.setattr(stage_bodies, "find_wishes", lambda lowering: {})
    linear = compile_graph(dense_step(kind), target("ipu2", tiles_per_ipu=16), Options())
    assert variable(linear, "layer/kernel").mapping_text.startswith("Linear")
    assert received_for_weight(found) < received_for_weight(linear)


@each_kind
def test_the_update_moves_neither_the_weight_nor_the_slot(kind: str) -> None:
    found = compiled(kind)
    weight, slot = variable(found, "layer/kernel"), variable(found, "optimizer/momentum")
    written = [step for step in found.program.steps if {weight.id, slot.id} & set(step.writes)]
    assert [(step.kind, set(step.reads) >= {weight.id, slot.id}) for step in written] == [("OnTileExecute", True)]


@each_kind
def test_a_weight_and_its_slot_are_there_once(kind: str) -> None:
    found = compiled(kind)
    weight = variable(found, "layer/kernel")
    resident = [v for v in found.program.variables if v.kind in ("parameter", "optimizer")]
    elements = {"dense": 32 * 48, "conv": 3 * 3 * 8 * 16}[kind]
    assert weight.size_bytes == elements * 4
    assert sum(v.size_bytes for v in resident) == 2 * elements * 4 + 4  # and the learning rate


def test_the_first_reader_decides() -> None:
    """Two products that want the weight differently: it lies as the first, forward, one wants."""
    d = Draft()
    w, x = d.weight("w", (64, 16)), d.param("x", (8, 64))
    y = d.dot(x, w)
    with d.at(direction="backward"):
        back = d.dot(y, w, (1, 1))
    both = compile_graph(d.graph(back), target("ipu2", tiles_per_ipu=16), Options())
    d = Draft()
    w, x = d.weight("w", (64, 16)), d.param("x", (8, 64))
    alone = compile_graph(d.graph(d.dot(x, w)), target("ipu2", tiles_per_ipu=16), Options())
    assert variable(both, "w").mapping_text == variable(alone, "w").mapping_text
