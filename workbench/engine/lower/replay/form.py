"""What a stage's body is without the names of its layers and its place: bodies of one form lower alike.

A form numbers the values of a body, its origins and its layers by first use. Two stages with equal layers, and a body
that several graphs of one model have, have equal forms, whatever their layers are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.origin import Origin
from workbench.engine.ops import family_of


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Form:
    """A body by numbers. `key` is equal for bodies of one form; the rest is what each number stands for in this one.

    `functions` are the body and what it calls, `nodes` those of all of them, `labels` the names that operators are
    counted under, which are those of a layer or the model.
    """

    key: tuple[Any, ...]
    model: str
    functions: tuple[Function, ...]
    values: tuple[Value, ...]
    number: dict[Value, int]  # value → its number
    nodes: tuple[Node, ...]
    origins: tuple[Origin, ...]
    layers: tuple[str, ...]
    sources: tuple[str, ...]
    labels: tuple[str, ...]
    place: dict[Node, int] = field(default_factory=dict)  # node → its number

    def is_of(self, graph: Graph) -> bool:
        """Whether a graph has the body and all it calls."""
        found = all(graph.functions.get(each.name) is each for each in self.functions)
        return found and self.model == graph.name


def form_of(graph: Graph, function: Function) -> Form:
    """The form of a function and of all it calls."""
    reading = _Reading(graph)
    body = reading.function(function)
    words = dict.fromkeys((node.origin.layer or graph.name, family_of(node).word(node)) for node in reading.nodes)
    numbered = {label: place for place, label in enumerate(reading.layers)}
    counted = tuple((numbered.get(layer, -1), word) for layer, word in words)
    types = tuple((value.shape, value.dtype) for value in reading.values)
    return Form(
        key=(body, types, tuple(reading.told), counted, graph.name in reading.layers),
        model=graph.name,
        functions=tuple(reading.functions),
        values=tuple(reading.values),
        number=reading.number,
        nodes=tuple(reading.nodes),
        place={node: place for place, node in enumerate(reading.nodes)},
        origins=tuple(reading.origins),
        layers=tuple(reading.layers),
        sources=tuple(reading.sources),
        labels=tuple(f"{layer}/{word}" for layer, word in words),
    )


@dataclass(slots=True)
class _Reading:
    """Numbers what it meets; `told` says of each origin what lowering may depend on."""

    graph: Graph
    functions: list[Function] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    number: dict[Value, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    origins: dict[Origin, int] = field(default_factory=dict)
    layers: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    told: list[tuple[Any, ...]] = field(default_factory=list)

    def function(self, function: Function) -> tuple[Any, ...]:
        """What a function is, by numbers."""
        self.functions.append(function)
        params = tuple(self._value(value) for value in function.params)
        nodes = tuple(self._node(node) for node in function.nodes)
        return (params, nodes, tuple(self._value(value) for value in function.results))

    def _node(self, node: Node) -> tuple[Any, ...]:
        self.nodes.append(node)
        operands = tuple(self._value(value) for value in node.operands)
        inside = tuple(self.function(self.graph.functions[name]) for name in node.calls)
        results = tuple(self._value(value) for value in node.results)
        return (node.op, node.attrs, node.times, operands, results, self._origin(node.origin), inside)

    def _value(self, value: Value) -> int:
        known = self.number.setdefault(value, len(self.values))
        if known == len(self.values):
            self.values.append(value)
        return known

    def _origin(self, origin: Origin) -> int:
        known = self.origins.setdefault(origin, len(self.told))
        if known == len(self.told):
            layer = self.layers.setdefault(origin.layer, len(self.layers)) if origin.layer else -1
            source = self.sources.setdefault(origin.source, len(self.sources)) if origin.source else -1
            self.told.append((layer, replace(origin, layer="", source=""), source))
        return known


def _paths(layer: str) -> list[str]:
    """The paths that a layer's path goes through."""
    return [layer[:place] for place, letter in enumerate(layer) if letter == "/"]


class Renaming:
    """From the names in one body to those in another of the same form.

    A name is that of a function, or begins with the path of a layer or the name of a function. `is_clear` says whether
    each such name has one meaning: layers inside one another stay so, and keep the end of their path wherever an
    operator of the outer one may be called so too; and none is called as a function or the model is.
    """

    def __init__(self, old: Form, new: Form, functions: dict[str, str], model: str) -> None:
        self.layers = dict(zip(old.layers, new.layers, strict=True))
        self.sources = dict(zip(old.sources, new.sources, strict=True))
        self.functions = functions
        self.prefixes = {**self.layers, **functions}
        self.same = old.origins == new.origins and all(name == other for name, other in self.prefixes.items())
        self._labels = {*old.labels, *new.labels}
        reserved = {model, "graph", *functions, *functions.values()}
        self.is_clear = self.same or (
            reserved.isdisjoint(self.layers)
            and reserved.isdisjoint(self.layers.values())
            and all(self._is_nested(layer) for layer in self.layers)
        )
        self._known: dict[str, str] = {}
        self._origins = dict(zip(old.origins, new.origins, strict=True))

    def _is_nested(self, layer: str) -> bool:
        new = self.layers[layer]
        for outer in (outer for outer in _paths(layer) if outer in self.layers):
            if not new.startswith(f"{self.layers[outer]}/"):
                return False
            is_same = new == self.layers[outer] + layer[len(outer) :]
            if not is_same and not self._labels.isdisjoint((layer, new, *_paths(layer), *_paths(new))):
                return False
        return True

    def function(self, name: str) -> str:
        """The name of a function."""
        return self.functions.get(name, name)

    def layer(self, name: str) -> str:
        """The path of a layer."""
        return self.layers.get(name, name)

    def source(self, name: str) -> str:
        """A line of source."""
        return self.sources.get(name, name)

    def origin(self, old: Origin) -> Origin:
        """Where something comes from."""
        known = self._origins.get(old)
        if known is None:
            layer, source = self.layer(old.layer), self.source(old.source)
            known = self._origins[old] = replace(old, layer=layer, source=source)
        return known

    def text(self, name: str) -> str:
        """The name of a step, variable or operator."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._text(name)
        return known

    def _text(self, name: str) -> str:
        if name in self.functions:
            return self.functions[name]
        end = name.rfind("/")
        while end > 0:
            found = self.prefixes.get(name[:end])
            if found is not None:
                return found + name[end:]
            end = name.rfind("/", 0, end)
        return name
