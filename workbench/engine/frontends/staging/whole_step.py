"""Recomputation in a step of one program, whose passes no call parts: on one IPU, or for each micro-batch.

Where checkpoints are named, or marked in the program, what lies before the last of them is made again from the one
before, right before the backward pass reads it. Where none are, the driver's rule holds: a convolution in front of a
norm is done again with the norm and what follows elementwise, from what the convolution read (graphcore/
tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/recompute_instructions.cc, `ConvNormMatcher`,
`ConvNormNLMatcher`). Casts of weights, which else live from one pass to the other, are done again in any case
(recompute_casts.cc there). Numbers stay: the graph alone is rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from math import isqrt

from workbench.engine.frontends.describe.name_stack import LOSS_LAYER, is_mark
from workbench.engine.frontends.staging.checkpoints import Patterns
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.graph.primitives import Kind, kind
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.ops.pointwise import is_free, is_pointwise

FLOATS = ("float16", "float32", "bfloat16")
LOOKS = (Kind.VIEW, Kind.IDENTITY)  # show elements otherwise
FOR_ALL = (Kind.HOST, Kind.COLLECTIVE)  # what others take part in is not done again


@lru_cache(maxsize=8)  # graphs of one trace, compiled with other options
def recomputed_step(graph: Graph, checkpoints: tuple[str, ...]) -> Graph:
    """The graph with what lies between checkpoints made again; it says what was done, or what to name."""
    patterns = Patterns(checkpoints)
    functions = {name: _of_function(function, patterns) for name, function in graph.functions.items()}
    changed = [name for name, function in functions.items() if function is not graph.functions[name]]
    step = _training_step(graph)
    if any(node.origin.layer_class for node in (step or graph.body).nodes):
        patterns.check()
    said = () if checkpoints or step is None else _said(step, [functions[name] for name in changed])
    return replace(graph, functions=functions, assumptions=(*graph.assumptions, *said)) if said or changed else graph


def _training_step(graph: Graph) -> Function | None:
    """The function that goes backward: the body, or that of a micro-batch where gradients are summed; None without."""
    ways = {name: {node.origin.direction for node in found.nodes} for name, found in graph.functions.items()}
    if "backward" in ways[graph.entry]:
        return graph.body
    return next((graph.functions[name] for name, found in ways.items() if {"forward", "backward"} <= found), None)


def _of_function(function: Function, patterns: Patterns) -> Function:
    step = _Step.of(function)
    if not step.back:
        return function
    kept = step.marked() | step.named(patterns)
    kept, places = (kept, step.before(kept)) if kept or patterns.names else step.of_norms()
    casts = step.casts()
    cast = {value for place in casts for value in function.nodes[place].results}
    return step.again(kept - cast, places | casts)


def _said(step: Function, changed: Sequence[Function]) -> tuple[str, ...]:
    again = [node for function in changed for node in function.nodes if node.origin.direction == "recompute"]
    if any(not is_pointwise(node) for node in again):
        return (
            "recomputation: convolutions before norms are done again with their norms, as the driver does on one IPU; "
            "layers named in recomputation_checkpoints would let go of more",
        )
    names = _Step.of(step).worth_naming()
    example = f", such as {names!r}, whose results alone would be kept" if names else ""
    what = "nothing but casts of weights is" if again else "nothing is"
    return (f"recomputation: {what} computed again; name layers in recomputation_checkpoints{example}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A function with passes in both directions: places of the nodes going forward, and of those going backward."""

    function: Function
    ahead: tuple[int, ...]
    back: tuple[int, ...]
    maker: dict[Value, int] = field(repr=False)  # what goes forward → its place

    @classmethod
    def of(cls, function: Function) -> _Step:
        ways = [node.origin.direction for node in function.nodes]
        ahead = tuple(place for place, way in enumerate(ways) if way == "forward")
        maker = {value: place for place in ahead for value in function.nodes[place].results}
        back = tuple(place for place, way in enumerate(ways) if way == "backward")
        return cls(function=function, ahead=ahead, back=back, maker=maker)

    def _forward(self) -> Iterator[tuple[int, Node]]:
        return ((place, self.function.nodes[place]) for place in self.ahead)

    def marked(self) -> set[Value]:
        """Values marked as checkpoints."""
        marks = [node for _, node in self._forward() if is_mark(node.op, node.attr("name"))]
        return {value for node in marks for value in node.operands if value in self.maker}

    def named(self, patterns: Patterns) -> set[Value]:
        """Results of layers that a pattern names, which other layers read."""
        if not patterns.names:
            return set()
        inside = {place: patterns.matching(node.origin.layer) for place, node in self._forward()}
        found = set()
        for place, node in self._forward():
            for value in node.operands:
                made_in = inside.get(self.maker.get(value, -1), "")
                if made_in and made_in != inside[place] and value.dtype in FLOATS:
                    found.add(value)
        return found

    def before(self, kept: Collection[Value]) -> set[int]:
        """The places that some checkpoint comes of, and what branches off them for the backward pass alone."""
        nodes, found = self.function.nodes, set[int]()
        pending = [self.maker[value] for value in kept]
        while pending:
            place = pending.pop()
            if place not in found:
                found.add(place)
                pending += [self.maker[value] for value in nodes[place].operands if value in self.maker]
        last = set(kept) - {value for place in found for value in nodes[place].operands}
        for place, node in self._forward():
            read = [value for value in node.operands if value in self.maker]
            if read and all(self.maker[value] in found and value not in last for value in read):
                found.add(place)
        return found

    def casts(self) -> set[int]:
        """Places that cast a parameter."""
        params = set(self.function.params)
        # Because the driver does this again for every reader.
        return {p for p, node in self._forward() if node.op == "convert_element_type" and node.operands[0] in params}

    def of_norms(self) -> tuple[set[Value], set[int]]:
        """What convolutions before norms leave: the values kept beside it, and the places done again."""
        kept = {value for _, node in self._forward() if not _is_light(node) for value in node.operands}
        normed, found, made = self._before_norms(kept), set[int](), set[Value]()
        for place, node in self._forward():
            if place in normed or (_is_light(node) and not made.isdisjoint(node.operands)):
                found.add(place)
                made.update(value for value in node.results if value not in kept)
        return kept, found

    def _before_norms(self, kept: Collection[Value]) -> set[int]:
        """Convolutions whose results are reduced, changed element by element or not, before others read them."""
        comes_of: dict[Value, set[int]] = {}
        found = set[int]()
        for place, node in self._forward():
            sources = set[int]().union(*(comes_of.get(value, ()) for value in node.operands if value not in kept))
            # Because the driver's patterns begin with one.
            if node.op == "conv_general_dilated":
                sources = {place}
            elif not _is_light(node):
                continue
            if kind(node) is Kind.REDUCTION:
                found |= sources
            comes_of.update(dict.fromkeys(node.results, sources))
        return found

    def again(self, kept: Collection[Value], places: Collection[int]) -> Function:
        """The function in which the backward pass makes what these places made, but for what is kept."""
        writing = _Again(step=self, kept=frozenset(kept), places=self._may(places), ids=FreshIds(self.function))
        for node in self.function.nodes:
            if node.origin.direction == "backward":
                node = node.reading(tuple(map(writing.read, node.operands)))
            writing.nodes.append(node)
        return replace(self.function, nodes=tuple(writing.nodes)) if writing.made else self.function

    def _may(self, places: Collection[int]) -> frozenset[int]:
        nodes = self.function.nodes
        return frozenset(place for place in places if kind(nodes[place]) not in FOR_ALL)

    def worth_naming(self) -> tuple[str, ...]:
        """Layers behind which one float goes on, as many as the root of their number, with even bytes between them."""
        nodes = self.function.nodes
        read_back = {value for place in self.back for value in nodes[place].operands}
        last = {value: place for place, node in self._forward() for value in node.operands if value in self.maker}
        open_: set[Value] = set()
        alone: list[tuple[int, str]] = []  # bytes that the backward pass reads so far, layer
        sizes = accumulate(
            sum(value.size_bytes for value in nodes[place].results if value in read_back) for place in self.ahead
        )
        for (place, node), size_bytes in zip(self._forward(), sizes, strict=True):
            if is_free(node):
                continue
            open_.update(value for value in node.results if value.dtype in FLOATS)
            open_ = {value for value in open_ if last.get(value, -1) > place}
            layer = node.origin.layer.split("/")[0]
            if layer not in ("", LOSS_LAYER) and len(open_) == 1 and not open_.isdisjoint(node.results):
                alone = [pair for pair in alone if pair[1] != layer] + [(size_bytes, layer)]
        return _evenly(alone)


def _evenly(alone: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Layers with even bytes between them, without the last, behind which nothing is made again."""
    count = isqrt(len(alone))
    if count < 1 or len(alone) < 2:
        return ()
    whole = alone[-1][0]
    wanted = [whole * number // (count + 1) for number in range(1, count + 1)]
    nearest = [min(alone[:-1], key=lambda pair: abs(pair[0] - size)) for size in wanted]
    return tuple(dict.fromkeys(layer for _, layer in nearest))


@dataclass(slots=True, kw_only=True)
class _Again:
    """Writes nodes of the forward pass where the backward pass first reads what they make."""

    step: _Step
    kept: frozenset[Value]
    places: frozenset[int]
    ids: FreshIds
    made: dict[Value, Value] = field(default_factory=dict)  # of the forward pass → made again
    nodes: list[Node] = field(default_factory=list)

    def read(self, value: Value) -> Value:
        """What a node going backward reads for a value; what makes it is written before, if it is not yet."""
        for place in sorted(self._missing(value)):
            node = self.step.function.nodes[place]
            results = tuple(map(self.ids.like, node.results))
            operands = tuple(self.made.get(each, each) for each in node.operands)
            origin = replace(node.origin, direction="recompute")
            self.nodes.append(replace(node, operands=operands, results=results, origin=origin))
            self.made.update((old, new) for old, new in zip(node.results, results, strict=True) if old not in self.kept)
        return self.made.get(value, value)

    def _missing(self, value: Value) -> set[int]:
        found, pending = set[int](), [value]
        while pending:
            each = pending.pop()
            place = self.step.maker.get(each, -1)
            if place in self.places and place not in found and each not in self.kept and each not in self.made:
                found.add(place)
                pending += self.step.function.nodes[place].operands
        return found


def _is_light(node: Node) -> bool:
    """Whether a node computes element by element, sums or looks: what norms and activations are made of."""
    return is_free(node) or is_pointwise(node) or kind(node) in (Kind.REDUCTION, *LOOKS)
