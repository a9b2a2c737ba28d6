"""Loops that run as often as their numbers say: as often as somebody told, else once; the verdict says which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from workbench.engine.graph.graph import Graph, Node, walk
from workbench.errors import InputError

UNKNOWN = "unknown_trip_count"


def with_trip_counts(graph: Graph, told: Mapping[str, int]) -> Graph:
    """The graph with loops of unknown count as long as `told` says, and what is assumed of all of them.

    A loop is named by the layer it is in, by its line ("model.py:12") or by its body's function.
    Errors: `InputError` for a name no such loop has.
    """
    loops = [node for _, node in walk(graph) if node.attr(UNKNOWN)]
    _check(told, {name: None for node in loops for name in _names(node)})
    if not loops:
        return graph
    counts = {node: told[name] for node in loops for name in _names(node) if name in told}
    functions = {
        name: replace(function, nodes=tuple(_counted(node, counts.get(node)) for node in function.nodes))
        for name, function in graph.functions.items()
    }
    said = dict.fromkeys(_sentence(node, counts.get(node)) for node in loops)
    return replace(graph, functions=functions, assumptions=(*graph.assumptions, *said))


def _check(told: Mapping[str, int], known: Mapping[str, None]) -> None:
    for name in told:
        if name not in known:
            raise InputError(
                f"trip_counts names {name!r}",
                expected=f"one of: {', '.join(known)}"
                if known
                else "no name, because every loop of this program has a count",
                todo="name a loop whose count is not known, or leave trip_counts out",
            )


def _names(node: Node) -> Iterator[str]:
    """What a loop may be called by: the clearest name first."""
    yield from dict.fromkeys(name for name in (node.origin.layer, node.calls[-1], node.origin.source) if name)


def _counted(node: Node, count: int | None) -> Node:
    if count is None:
        return node
    return replace(node, times=count, attrs=tuple(pair for pair in node.attrs if pair[0] != UNKNOWN))


def _sentence(node: Node, count: int | None) -> str:
    name = next(_names(node))
    if count is not None:
        return f"loops: {name!r} runs {count} times, as trip_counts says"
    return (
        f"loops: how often {name!r} runs depends on numbers, and it counts as running once; "
        f"trip_counts={{{name!r}: …}} says otherwise"
    )
