"""Residual roots: several residuals that one value can be made into are given up for that value.

Autodiff keeps what each rule of a gradient reads: of a GELU the error function, its density and more, of a norm
several forms of the centred input. PopLibs' gradients keep the input and compute these again (poplibs@7eac0f26
lib/popnn/NonLinearity.cpp, lib/popnn/Norms.cpp). Per call of a layer the value is found whose keeping lets most bytes
go. What a matmul or convolution reads going backward is kept as it is: giving that up is recomputation, an option.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.engine.graph import Function, Node, Value
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.ops.pointwise import is_free, is_pointwise
from workbench.engine.passes.clusters import Flow, flow_of
from workbench.engine.passes.recomputable import find_recipe, without_dead

MOST_ROOTS = 16  # values of one layer call that are tried as the one to keep
AHEAD = ("forward", "recompute")  # of what backward passes read
# Because the gradient of a layer that computes element by element has no other.
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min")

Group = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Residual:
    value: Value
    readers: tuple[int, ...]  # places of its readers going backward


def keep_roots(function: Function) -> Function:
    """Give up the residuals of every layer call that a better root makes again."""
    flow = flow_of(function)
    groups = _residuals(function, flow)
    if not any(len(group) > 1 for group in groups.values()):
        return function
    kept = _kept(function, flow, groups)
    ids = FreshIds(function)
    before: dict[int, list[Node]] = {}
    renamed: dict[tuple[int, Value], Value] = {}
    repeated: set[Node] = set()
    for group in groups.values():
        for residual, recipe in _given_up(group, flow, kept):
            made = _again(recipe, function.nodes[residual.readers[0]], ids)
            before.setdefault(min(residual.readers), []).extend(made)
            renamed.update({(place, residual.value): made[-1].results[0] for place in residual.readers})
            repeated.update(recipe)
    return without_dead(_rebuilt(function, before, renamed), repeated) if renamed else function


def _residuals(function: Function, flow: Flow) -> dict[Group, list[_Residual]]:
    """By layer call: values made elementwise going forward, for the first time or again, that elementwise nodes or sums
    of it read going backward.
    """
    returned = set(function.results)
    groups: dict[Group, list[_Residual]] = {}
    for node in function.nodes:
        if node.origin.direction not in AHEAD or not is_pointwise(node) or len(node.results) != 1:
            continue
        value = node.results[0]
        places = [p for p in flow.uses.get(value, ()) if function.nodes[p].origin.direction == "backward"]
        key = (node.origin.layer, node.origin.call)
        if not places or value in returned or not node.origin.layer:
            continue
        if all(_stays_inside(function.nodes[place], key) for place in places):
            groups.setdefault(key, []).append(_Residual(value, tuple(places)))
    return groups


def _stays_inside(reader: Node, key: Group) -> bool:
    same = (reader.origin.layer, reader.origin.call) == key
    return same and (is_pointwise(reader) or reader.op in REDUCTIONS)


def _kept(function: Function, flow: Flow, groups: dict[Group, list[_Residual]]) -> set[Value]:
    """What the backward pass reads besides the residuals in question."""
    questioned = {residual.value for group in groups.values() for residual in group}
    return {
        name
        for name, places in flow.uses.items()
        if name not in questioned and any(function.nodes[p].origin.direction == "backward" for p in places)
    }


def _given_up(group: list[_Residual], flow: Flow, kept: set[Value]) -> list[tuple[_Residual, list[Node]]]:
    """The residuals that go, with their recipes, for the root that saves most; none if no root saves anything."""
    best: list[tuple[_Residual, list[Node]]] = []
    best_bytes = 0
    missed: list[set[Value]] = [set() for _ in group]
    without = [find_recipe(each.value, flow, kept, looked) for each, looked in zip(group, missed, strict=True)]
    with_root = set(kept)
    for root in _roots(group, flow):
        with_root.add(root)
        found = []
        for residual, recipe, looked in zip(group, without, missed, strict=True):
            if root in looked:  # else keeping it changes nothing
                recipe = find_recipe(residual.value, flow, with_root)
            if recipe is not None and residual.value is not root:
                found.append((residual, recipe))
        if root not in kept:
            with_root.remove(root)
        is_new = root not in kept and all(residual.value is not root for residual in group)
        saved = sum(residual.value.size_bytes for residual, _ in found) - (root.size_bytes if is_new else 0)
        if saved > best_bytes:
            best, best_bytes = found, saved
    return best


def _roots(group: list[_Residual], flow: Flow) -> list[Value]:
    """The residuals and what they are made of elementwise, nearest first."""
    pending = [residual.value for residual in group]
    found: dict[Value, Value] = {}
    while pending and len(found) < MOST_ROOTS:
        value = pending.pop(0)
        if value in found:
            continue
        made_by = flow.producer.get(value)
        if made_by is not None and is_free(made_by):
            continue
        found[value] = value
        if made_by is not None and is_pointwise(made_by):
            pending += [operand for operand in made_by.operands if operand.elements == value.elements]
    return list(found.values())


def _again(recipe: list[Node], reader: Node, ids: FreshIds) -> list[Node]:
    """The recipe as new nodes going backward with results of their own; the last one makes the residual."""
    renamed: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in recipe:
        results = tuple(ids.like(made) for made in node.results)
        renamed.update(zip(node.results, results, strict=True))
        operands = tuple(renamed.get(operand, operand) for operand in node.operands)
        origin = replace(node.origin, direction=reader.origin.direction)
        nodes.append(replace(node, operands=operands, results=results, origin=origin))
    return nodes


def _rebuilt(function: Function, before: dict[int, list[Node]], renamed: dict[tuple[int, Value], Value]) -> Function:
    nodes: list[Node] = []
    for place, node in enumerate(function.nodes):
        nodes += before.get(place, [])
        nodes.append(node.reading(tuple(renamed.get((place, value), value) for value in node.operands)))
    return replace(function, nodes=tuple(nodes))
