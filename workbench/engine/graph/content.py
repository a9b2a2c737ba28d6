"""What a graph is, as text: graphs of one text are lowered alike and described alike, wherever their lines lie."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from workbench.engine.graph.graph import Function, Graph, Node, Value
from workbench.engine.graph.origin import Origin

_SAID = tuple(each.name for each in fields(Origin) if each.name != "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """`text` holds all of a graph but its source lines, which it numbers by first use; `positions` are those lines.

    A graph that was moved in its file, or copied to another, has the same text and other positions.
    """

    text: str
    positions: tuple[str, ...]


def content_of(graph: Graph) -> Content:
    """The content of a graph."""
    reading = _Reading()
    functions = [reading.function(name, function) for name, function in graph.functions.items()]
    about = (graph.name, graph.entry, graph.inputs, graph.outputs, graph.batch_size, graph.mode, graph.assumptions)
    whole = (about, sorted(graph.meta.items()), functions, list(reading.origins))
    return Content(text=repr(whole), positions=tuple(reading.positions))


@dataclass(slots=True)
class _Reading:
    """Numbers origins and source lines as it meets them."""

    origins: dict[tuple[object, ...], int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    _known: dict[Origin, int] = field(default_factory=dict)

    def function(self, name: str, function: Function) -> tuple[object, ...]:
        params, results = _types(function.params), [value.id for value in function.results]
        return (name, function.name, params, results, [self._node(node) for node in function.nodes])

    def _node(self, node: Node) -> tuple[object, ...]:
        operands, results = [value.id for value in node.operands], _types(node.results)
        return (node.op, operands, results, node.attrs, self._origin(node.origin), node.calls, node.times)

    def _origin(self, origin: Origin) -> int:
        known = self._known.get(origin)
        if known is None:
            place = self.positions.setdefault(origin.source, len(self.positions)) if origin.source else -1
            said = (*(getattr(origin, name) for name in _SAID), place)
            known = self._known[origin] = self.origins.setdefault(said, len(self.origins))
        return known


def _types(values: tuple[Value, ...]) -> list[tuple[object, ...]]:
    return [(value.id, value.shape, value.dtype) for value in values]
