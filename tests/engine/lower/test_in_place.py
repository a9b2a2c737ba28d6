from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.small_graphs import Draft, carried_loop
from workbench.engine.graph import Graph
from workbench.engine.lower.in_place import InPlace, find_in_place, verify_in_place
from workbench.engine.passes.fuse import fuse
from workbench.engine.passes.schedule import schedule
from workbench.errors import VerificationError


def chosen(graph: Graph) -> dict[str, str]:
    """result → the operand it overwrites, by number; the choice verified."""
    found = verify_in_place(graph, find_in_place(graph))
    values = {
        value: f"%{value.id}"
        for function in graph.functions.values()
        for node in function.nodes
        for value in (*node.results, *node.operands)
    }
    return {values[result]: f"%{operand.id}" for result, operand in found.reuse.items()}


def step(*, read_after: bool) -> Graph:
    """w' = w - g; with `read_after` the old w is read by the output afterwards."""
    d = Draft()
    w, x = d.weight("w", (8, 8)), d.param("x", (8, 8))
    out = d.dot(x, w)
    with d.at(direction="update"):
        new = d.point("sub", w, d.dot(x, out, (0, 0)))
    if read_after:
        out = d.dot(out, w)
    return d.graph(out, updates={"w": new})


def test_a_parameter_is_updated_where_it_is(golden: Any) -> None:
    graph = step(read_after=False)
    assert chosen(graph) == {"%4": "%0"}
    assert find_in_place(graph).updated == frozenset({0})
    golden("passes/in_place.txt", f"{graph}\n\nin place: {chosen(graph)}\n")


def test_a_parameter_that_is_read_afterwards_is_not_overwritten_but_its_gradient_is() -> None:
    graph = step(read_after=True)
    assert chosen(graph) == {"%4": "%3"}
    assert find_in_place(graph).updated == frozenset()


def test_the_schedule_moves_the_reader_before_the_update() -> None:
    """What runs late only because it is written late does not cost a copy of the weight."""
    d = Draft()
    w, x = d.weight("w", (8, 8)), d.param("x", (8, 8))
    with d.at(direction="backward"):
        g = d.dot(x, x, (0, 0))
        back = d.dot(x, w)
    with d.at(direction="update"):
        new = d.point("sub", w, g)
    graph = schedule(d.graph(back, updates={"w": new}))
    assert find_in_place(graph).updated == frozenset({0})


def test_momentum_and_weight_of_one_chain_take_their_own_memory() -> None:
    d = Draft()
    w, m, g = d.weight("w", (8, 8)), d.param("m", (8, 8), "optimizer"), d.param("g", (8, 8))
    with d.at(direction="update"):
        moved = d.point("mul", m, d.constant(0.9))
        new_m = d.point("sub", moved, d.point("mul", g, d.constant(0.1)))
        new_w = d.point("add", w, new_m)
    graph = fuse(d.graph(updates={"w": new_w, "m": new_m}))
    assert chosen(graph) == {f"%{new_m.id}": f"%{m.id}", f"%{new_w.id}": f"%{w.id}"}
    assert find_in_place(graph).updated == frozenset({0, 1})


def test_an_input_is_kept_and_a_value_that_dies_is_overwritten() -> None:
    d = Draft()
    x = d.param("x", (8, 8))
    y = d.point("neg", x)
    z = d.dot(y, d.point("exp", y))
    graph = d.graph(d.point("neg", z))
    # exp reads y, which the product reads too; only the last value dies where it is read
    assert chosen(graph) == {"%4": "%3"}


def test_a_view_is_the_memory_it_looks_at() -> None:
    d = Draft()
    x = d.param("x", (8, 8))
    y = d.point("neg", x)
    seen = d.transpose(y, 1, 0)
    z = d.point("exp", seen)
    late = d.dot(y, z)
    assert chosen(d.graph(late)) == {}
    d = Draft()
    y = d.point("neg", d.param("x", (8, 8)))
    assert chosen(d.graph(d.point("exp", d.transpose(y, 1, 0)))) == {"%3": "%2"}


def test_a_joined_value_is_overwritten_only_if_all_its_parts_die() -> None:
    def joined(*, input_too: bool) -> Graph:
        d = Draft()
        x = d.param("x", (8, 8))
        y, z = d.point("neg", x), d.point("exp", x)
        return d.graph(d.point("tanh", d.concatenate([y, x if input_too else z], 1)))

    assert chosen(joined(input_too=False)) == {"%4": "%3"}
    assert chosen(joined(input_too=True)) == {}


def test_an_operand_read_twice_by_one_node_is_not_overwritten() -> None:
    d = Draft()
    y = d.point("neg", d.param("x", (8, 8)))
    seen = d.transpose(y, 1, 0)
    assert chosen(d.graph(d.point("add", y, seen))) == {}


def test_another_size_of_element_does_not_fit() -> None:
    d = Draft()
    y = d.point("neg", d.param("x", (8, 8)))
    assert chosen(d.graph(d.cast(y, "float16"))) == {}


def test_a_carry_is_added_to_where_it_is() -> None:
    graph, new, carry = carried_loop()
    assert find_in_place(graph).reuse[new] is carry


# -- the verifier ---------------------------------------------------------------------------------------------


def test_a_wrong_choice_is_caught() -> None:
    """The weight overwritten although a later node still reads it."""
    graph = step(read_after=True)
    w = graph.body.params[0]
    update = next(node for node in graph.body.nodes if node.op == "sub")
    wrong = InPlace(reuse={update.results[0]: w}, updated=frozenset({0}))
    with pytest.raises(VerificationError, match=r"^%5.* = dot_general\(%2, %0\).* reads %0:float32\[8,8\], which %4"):
        verify_in_place(graph, wrong)


def test_a_wrong_choice_through_a_view_is_caught() -> None:
    d = Draft()
    y = d.point("neg", d.param("x", (8, 8)))
    seen = d.transpose(y, 1, 0)
    z = d.point("exp", y)
    graph = d.graph(d.dot(seen, z))
    wrong = InPlace(reuse={z: y}, updated=frozenset())
    with pytest.raises(VerificationError, match=r"reads %2:float32\[8,8\], which %3"):
        verify_in_place(graph, wrong)


def test_a_wrong_choice_inside_a_region_is_caught() -> None:
    inner = Draft("inner")
    d = Draft()
    x = d.param("x", (8, 8))
    y = d.point("neg", x)
    with d.at(layer="n"):
        z = d.point("exp", y)
        out = d.point("add", y, z)
    body = replace(inner.function(out), params=(y,), nodes=tuple(d.b.nodes[1:]))
    d.b.nodes[1:] = []
    d.b.nodes.append(replace(d.b.nodes[0], op="region", operands=(y,), results=(out,), calls=("inner",)))
    graph = d.graph(out, bodies=(body,))
    assert verify_in_place(graph, find_in_place(graph))
    with pytest.raises(VerificationError, match="reads %1"):
        verify_in_place(graph, InPlace(reuse={z: y}, updated=frozenset()))
