from __future__ import annotations

from dataclasses import replace

from tests.engine.passes.staged_models import graph_of
from tests.engine.small_graphs import Draft, carried_loop
from workbench.engine.graph import Graph
from workbench.engine.graph.flow import callees_first, carried, private_params
from workbench.engine.passes.canonicalise import canonicalise
from workbench.engine.passes.fuse import fuse


def test_updates_of_the_entry_carry_their_parameter() -> None:
    d = Draft()
    w, x = d.weight("w", (4,)), d.param("x", (4,))
    graph = d.graph(d.point("neg", x), updates={"w": d.point("add", w, x)})
    assert carried(graph) == {"main": {1: 0}}


def test_data_is_no_carry_even_if_it_is_given_back() -> None:
    d = Draft()
    x = d.param("x", (4,))
    assert carried(d.graph(updates={"x": d.point("neg", x)})) == {"main": {}}


def test_a_scan_carries_behind_its_constants_and_its_slices_are_its_own() -> None:
    graph, _, _ = carried_loop()
    assert carried(graph)["body"] == {0: 0}
    assert private_params(graph) == {"body": frozenset({1})}


def test_callees_come_first() -> None:
    graph, _, _ = carried_loop()
    assert [function.name for function in callees_first(graph)] == ["body", "main"]


def accumulated(graph: Graph) -> dict[str, list[str]]:
    """Function → names of the entry parameters that its results carry."""
    described = {id(value): item.name for value, item in zip(graph.body.params, graph.inputs, strict=True)}
    memory = dict(described)
    found: dict[str, list[str]] = {}
    pairs = carried(graph)
    for node in graph.body.nodes:
        names = []
        for result, operand in sorted(pairs[node.calls[0]].items()):
            memory[id(node.results[result])] = memory[id(node.operands[operand])]
            names.append(memory[id(node.operands[operand])])
        found[node.calls[0]] = names
    return found


def test_every_sum_goes_back_into_its_own_accumulator() -> None:
    """Also where gradients of two kinds leave a stage, and after fusion has put the sums into chains."""
    raw = canonicalise(graph_of(("a", "b"), 12, "training", True))
    for graph in (raw, fuse(raw)):
        found, sum_of = accumulated(graph), {item.name: item.of for item in graph.inputs if item.role == "accumulator"}
        for stage, layers in ((0, ["a"]), (1, ["b"]), (2, ["c", "out"])):
            sums = [name for name in found[f"stage{stage}_backward"] if name in sum_of]
            assert sorted(sum_of[name] for name in sums) == [
                f"{layer}/{weight}" for layer in layers for weight in ("bias", "kernel")
            ]
            body = graph.functions[f"stage{stage}_backward"]
            for result, param in carried(graph)[body.name].items():
                assert body.results[result].shape == body.params[param].shape
            zeroed = [name for name in found[f"stage{stage}_update"] if name in sum_of]
            assert sorted(zeroed) == sorted(sums)


def test_weights_and_slots_are_carried_by_the_update() -> None:
    found = accumulated(graph_of(("b",), 8))["stage1_update"]
    for layer in ("c", "out"):
        assert f"{layer}/kernel" in found
        assert f"optimizer/{layer}_kernel_momentum" in found


def test_a_call_outside_the_entry_is_left_alone() -> None:
    d = Draft()
    x = d.param("x", (4,))
    graph = d.graph(d.point("neg", x))
    assert carried(replace(graph, outputs=graph.outputs)) == {"main": {}}
