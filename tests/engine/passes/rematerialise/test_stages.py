from __future__ import annotations

from dataclasses import replace

from tests.engine.small_graphs import Draft, all_ops, before_and_after
from workbench.engine.graph import Function, Graph, Node, Value, verify_graph
from workbench.engine.passes.rematerialise.stages import rematerialise_stages


def staged(ahead: Function, back: Function, residuals: list[int], inputs: Draft, *more: Value) -> Graph:
    """An entry that calls one stage forward and back; backward gets residuals by result number, then `more`."""
    b = inputs.b
    x = tuple(b.params)
    types = tuple((value.shape, value.dtype) for value in ahead.results)
    first = b.node("call", x, types, calls=(ahead.name,), times=4, stage=0, direction="forward")
    taken = (*(first[number] for number in residuals), *more)
    types = tuple((value.shape, value.dtype) for value in back.results)
    last = b.node("call", taken, types, calls=(back.name,), times=4, stage=0, direction="backward")
    return inputs.graph(first[0], *last, bodies=(ahead, back))


def calls(graph: Graph) -> tuple[Node, Node]:
    first, last = graph.body.nodes
    return first, last


def relu_stage() -> Graph:
    """A dense layer with ReLU, then one without: the second layer's input and the mask are kept."""
    ahead = Draft("stage0_forward")
    x, w, v = (ahead.b.param(shape, "float32") for shape in ((8, 8), (8, 8), (8, 4)))
    with ahead.at(layer="a"):
        made = ahead.dot(x, w)
        y = ahead.point("max", made, ahead.constant(0.0))
        mask = ahead.point("gt", y, ahead.constant(0.0))
    with ahead.at(layer="b"):
        out = ahead.dot(y, v)
    back = Draft("stage0_backward")
    y_kept, mask_kept, g = (
        back.b.param(shape, kind) for shape, kind in (((8, 8), "float32"), ((8, 8), "bool"), ((8, 8), "float32"))
    )
    with back.at(layer="b", direction="backward"):
        slope = back.dot(y_kept, g, (0, 0))
    with back.at(layer="a", direction="backward"):
        masked = back.point("mul", back.cast(mask_kept, "float32"), g)
    entry = Draft()
    entry.param("x", (8, 8))
    entry.weight("a/kernel", (8, 8))
    entry.weight("b/kernel", (8, 4))
    g_outer = entry.param("g", (8, 8))
    forward = replace(ahead.function(out, y, mask), params=(x, w, v, ahead.b.param((8, 8), "float32")))
    return staged(forward, back.function(slope, masked), [1, 2], entry, g_outer)


def test_a_mask_is_made_by_the_backward_function(golden: object) -> None:
    graph = relu_stage()
    found = rematerialise_stages(graph)
    golden("passes/rematerialise.stages.txt", before_and_after(graph, found))  # type: ignore[operator]
    first, last = calls(found)
    assert [str(value.dtype) for value in first.results] == ["float32", "float32"]
    assert [str(value.dtype) for value in last.operands] == ["float32", "float32"]
    assert "gt" not in all_ops(found, "stage0_forward")
    assert all_ops(found, "stage0_backward")[:3] == ["dot_general", "constant", "gt"]


def one_residual(make: object, *, kept_too: bool = False, returned: bool = False) -> Graph:
    """A stage whose forward function makes a [32, 8] residual from x and w; `kept_too`: x goes backward as well."""
    ahead, back = Draft("stage0_forward"), Draft("stage0_backward")
    x, w = ahead.b.param((32, 8), "float32"), ahead.b.param((8,), "float32")
    out, residual = make(ahead, x, w)  # type: ignore[operator]
    r, g = back.b.param((32, 8), "float32"), back.b.param((32, 8), "float32")
    with back.at(direction="backward"):
        results = [back.point("mul", r, g)]
    entry = Draft()
    entry.param("x", (32, 8))
    entry.weight("w", (8,))
    graph = staged(ahead.function(out, residual), back.function(*results), [1], entry, entry.b.params[0])
    if returned:
        body = graph.body
        outputs = (*graph.outputs, replace(graph.outputs[0], name="kept"))
        entry_body = replace(body, results=(*body.results, body.nodes[0].results[1]))
        graph = replace(graph, functions={**graph.functions, "main": entry_body}, outputs=outputs)
    return verify_graph(graph)


def centred(d: Draft, x: Value, w: Value) -> tuple[Value, Value]:
    mean = d.reduce("reduce_sum", x, 0)
    return d.point("mul", mean, w), d.point("sub", x, d.broadcast(mean, (32, 8), (1,)))


def test_a_small_value_is_kept_instead_of_a_large_one() -> None:
    """x arrives anyway; of the difference only the mean, 32 times smaller, has to wait."""
    found = rematerialise_stages(one_residual(centred))
    first, last = calls(found)
    assert [value.shape for value in first.results] == [(8,), (8,)]
    assert [value.shape for value in last.operands] == [(32, 8), (8,)]
    assert all_ops(found, "stage0_backward") == ["broadcast_in_dim", "sub", "mul"]
    assert all_ops(found, "stage0_forward") == ["reduce_sum", "mul"]


def test_a_constant_is_made_where_it_is_read() -> None:
    def zeros(d: Draft, x: Value, w: Value) -> tuple[Value, Value]:
        return d.point("neg", x), d.broadcast(d.constant(0.0), (32, 8))

    found = rematerialise_stages(one_residual(zeros))
    first, last = calls(found)
    assert len(first.results) == 1
    assert [value.shape for value in last.operands] == [(32, 8)]
    assert all_ops(found, "stage0_forward") == ["neg"]


def test_what_nothing_elementwise_makes_is_stashed() -> None:
    def product(d: Draft, x: Value, w: Value) -> tuple[Value, Value]:
        return d.point("neg", x), d.dot(d.dot(x, x, (1, 1)), x)

    graph = one_residual(product)
    assert rematerialise_stages(graph) is graph


def test_what_the_entry_returns_stays_a_result_but_is_not_stashed() -> None:
    found = rematerialise_stages(one_residual(centred, returned=True))
    first, last = calls(found)
    assert [value.shape for value in first.results] == [(8,), (32, 8), (8,)]
    assert [value.shape for value in last.operands] == [(32, 8), (8,)]
    assert "sub" in all_ops(found, "stage0_forward")


def test_one_recipe_may_rest_on_another() -> None:
    ahead, back = Draft("stage0_forward"), Draft("stage0_backward")
    x = ahead.b.param((8, 8), "float32")
    y = ahead.point("neg", x)
    z = ahead.point("tanh", y)
    z_kept, y_kept, x_kept = (back.b.param((8, 8), "float32") for _ in range(3))
    with back.at(direction="backward"):
        out = back.point("add", back.point("mul", z_kept, y_kept), x_kept)
    entry = Draft()
    entry.param("x", (8, 8))
    graph = staged(ahead.function(x, z, y), back.function(out), [1, 2], entry, entry.b.params[0])
    found = verify_graph(rematerialise_stages(graph))
    assert all_ops(found, "stage0_backward") == ["neg", "tanh", "mul", "add"]
    assert all_ops(found, "stage0_forward") == []
    assert len(calls(found)[1].operands) == 1


def test_a_graph_without_stages_is_left_alone() -> None:
    d = Draft()
    graph = d.graph(d.point("neg", d.param("x", (4,))))
    assert rematerialise_stages(graph) is graph
