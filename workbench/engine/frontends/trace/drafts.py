"""The graph before it is frozen: flat equations over numbered values, pruned, attributed, made a `Function`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.engine.cost import Plain
from workbench.engine.frontends.describe.name_stack import OPTIMIZER_LAYER, LayerNames
from workbench.engine.graph import Function, Node, Value
from workbench.engine.graph.origin import Direction, Origin

Type = tuple[tuple[int, ...], str]


@dataclass(slots=True)
class Draft:
    """One equation. `operands` and `results` are value numbers; `direction` is None where nothing says it."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attrs: tuple[tuple[str, Plain], ...] = ()
    layer: str = ""
    call: int = 1
    direction: Direction | None = None
    region: str = ""
    source: str = ""
    calls: tuple[str, ...] = ()
    times: int = 1
    shard: int = -1
    effect: bool = False  # it runs even where nothing reads its results


@dataclass(slots=True)
class Sheet:
    """The drafts of one function and the types of its values, by number."""

    types: list[Type] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    literals: dict[tuple[str, str, Type], int] = field(default_factory=dict)

    def number(self, shape: tuple[int, ...], dtype: str) -> int:
        """A new value of a type."""
        self.types.append((shape, dtype))
        return len(self.types) - 1

    def node(self, draft: Draft) -> Node:
        """A draft as a node by itself, with values of its own."""
        operands, results = (
            tuple([Value(number, *self.types[number]) for number in numbers])
            for numbers in (draft.operands, draft.results)
        )
        return Node(draft.op, operands, results, draft.attrs, Origin(direction=draft.direction or "forward"))

    def literal(self, value: Plain, shape: tuple[int, ...], dtype: str) -> int:
        """A scalar constant; equal constants are one value."""
        key = (type(value).__name__, repr(value), (shape, dtype))
        known = self.literals.get(key)
        if known is None:
            known = self.literals[key] = self.number(shape, dtype)
            self.drafts.append(Draft("constant", (), (known,), (("value", value),)))
        return known


def prune(sheet: Sheet, results: Iterable[int]) -> None:
    """Drop the drafts whose results nothing needs and that have no effect of their own."""
    needed = set(results)
    kept = []
    for draft in reversed(sheet.drafts):
        if needed.isdisjoint(draft.results) and not draft.effect:
            continue
        needed.update(draft.operands)
        kept.append(draft)
    sheet.drafts = kept[::-1]


def name_unnamed(sheet: Sheet, owners: Mapping[int, str], direction: Direction) -> None:
    """Give a draft outside any layer the layer and call of its first consumer that has one.

    A result nothing consumes belongs to its owner in `owners`, or to the layer that reads the same operand;
    `direction` is that of drafts nothing says one for.
    """
    consumer = {number: (layer, 1, direction) for number, layer in owners.items()}
    for draft in reversed(sheet.drafts):
        users = [consumer[number] for number in draft.results if number in consumer]
        if not draft.layer and draft.direction != "update" and users:
            draft.layer, draft.call, wanted = users[0]
            if draft.op == "constant":
                draft.direction = wanted
        if draft.direction is None:
            draft.direction = direction
        if draft.layer:
            consumer.update(dict.fromkeys(draft.operands, (draft.layer, draft.call, draft.direction)))
    for draft in sheet.drafts:
        readers = [consumer[number] for number in draft.operands if number in consumer]
        if not draft.layer and readers:
            draft.layer, draft.call, _ = readers[0]


def name_updates(sheet: Sheet, owners: Mapping[int, str]) -> None:
    """Give every update the layer of the variables it writes; what writes those of many is the optimizer's.

    `owners` maps the number of a result to the layer of the variable it is the new value of.
    """
    writes: dict[int, set[str]] = {number: {layer} for number, layer in owners.items() if layer}
    for draft in reversed(sheet.drafts):
        layers: set[str] = set()
        for number in draft.results:
            layers |= writes.get(number, set())
        if draft.direction != "update":
            continue
        draft.layer = next(iter(layers)) if len(layers) == 1 else OPTIMIZER_LAYER
        for number in draft.operands:
            writes[number] = writes.get(number, set()) | layers


def freeze_function(
    name: str, sheet: Sheet, params: Sequence[int], results: Sequence[int], names: LayerNames
) -> Function:
    """Number the values in order of definition and make the nodes."""
    values: dict[int, Value] = {}

    def define(number: int) -> Value:
        shape, dtype = sheet.types[number]
        values[number] = Value(len(values), shape, dtype)
        return values[number]

    inputs = tuple(define(number) for number in params)
    origins: dict[tuple[str, int, Direction, str, str, int], Origin] = {}
    nodes = []
    for draft in sheet.drafts:
        key = (draft.layer, draft.call, draft.direction or "forward", draft.region, draft.source, draft.shard)
        if key not in origins:
            layer, call, direction, region, source, shard = key
            origins[key] = Origin(
                layer=layer,
                layer_class=names.class_of(layer),
                call=call,
                direction=direction,
                region=region,
                source=source,
                shard=shard,
            )
        operands = tuple(values[number] for number in draft.operands)
        made = tuple(define(number) for number in draft.results)
        nodes.append(Node(draft.op, operands, made, draft.attrs, origins[key], draft.calls, draft.times))
    return Function(name, inputs, tuple(values[number] for number in results), tuple(nodes))
