"""Shard: every node gets an IPU, and what one IPU makes for another is copied over.

A scope decides for what was traced in it, forward and backward. What is in no scope runs where the largest of what it
reads is, or where its first reader is. Constants are made where they are read. A variable is on the IPU of its first
reader, and so is its update. A loop that only carries values may span IPUs: each carry stays on one, and the nodes of
its body are placed as those of the entry are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from workbench.engine.graph import RESIDENT_ROLES, Function, Graph, Input, Node, Value, attrs
from workbench.engine.graph.flow import INLINE
from workbench.engine.graph.primitives import Kind, names, primitive
from workbench.engine.graph.stages import stage_calls
from workbench.errors import InputError

COPY = "inter_ipu_copy"
SPANS = -2  # the place of a loop whose body is on several IPUs
# A reshape too, because one stands between a number and what repeats it.
FREE = names(Kind.FREE) | {"reshape"}


def shards_of(graph: Graph) -> int:
    """IPUs that scopes name: one more than the highest number; 1 without scopes."""
    found = [node.origin.shard for function in graph.functions.values() for node in function.nodes]
    return max(found, default=-1) + 1 or 1


def shard(graph: Graph) -> Graph:
    """Place the nodes of the entry; a graph without scopes stays as it is."""
    count = shards_of(graph)
    if count == 1:
        return graph
    if stage_calls(graph):
        raise _in_stages(graph)
    work = _Sharding(graph, graph.body, dict(graph.functions))
    work.functions[graph.entry] = work.run(work.result)
    places = tuple(work.home.get(value, 0) for value in graph.body.params)
    return replace(graph, functions=work.functions, meta={**graph.meta, "shards": count, "input_shards": places})


def _in_stages(graph: Graph) -> InputError:
    """Shards in a stage, or in the micro-batches of an accumulation, which are one stage.

    The driver refuses them too: a stage has one sharding, which all of it must have (graphcore/tensorflow@b2127bba
    tensorflow/compiler/plugin/poplar/driver/passes/pipeline_verifier.cc:35-53).
    """
    found: dict[int, dict[str, int]] = {}
    calls = stage_calls(graph)
    for call in calls:
        for node in call.function.nodes:
            if node.origin.shard >= 0 and node.origin.layer:
                found.setdefault(call.number, {}).setdefault(node.origin.layer, node.origin.shard)
    stages = len({call.number for call in calls})
    stage, layers = next(iter(found.items()), (0, dict[str, int]()))
    listed = ", ".join(f"{layer!r} on IPU {shard}" for layer, shard in list(layers.items())[:4])
    named = f": {listed}{', …' if len(layers) > 4 else ''}" if listed else ""
    if stages > 1:
        return InputError(
            f"the pipeline stage {stage} has layers in scopes of ipu_shard{named}",
            expected="one IPU for each stage",
            todo="leave ipu_shard out; stages= and device_mapping= say where layers are",
        )
    return InputError(
        f"micro-batches are accumulated over layers in scopes of ipu_shard{named}",
        expected="gradient accumulation on one IPU, or over pipeline stages",
        todo="leave ipu_shard out, and give stages= with the same numbers and pipeline_schedule='Sequential': one "
        "stage after the other, as shards run",
    )


@dataclass(slots=True)
class _Sharding:
    """The IPUs of values and nodes of the entry or of a loop's body, and the nodes with copies between."""

    graph: Graph
    function: Function
    functions: dict[str, Function]  # of the module, with bodies that span IPUs as they are placed
    home: dict[Value, int] = field(default_factory=dict)  # value → IPU
    made_by: dict[Value, Node] = field(default_factory=dict)
    copies: dict[tuple[Value, int], Value] = field(default_factory=dict)
    loops: dict[Node, tuple[int, ...]] = field(default_factory=dict)  # loop → IPU of each operand
    nodes: list[Node] = field(default_factory=list)
    next_id: int = 0

    def run(self, result: Callable[[int, Value], Value]) -> Function:
        """The function with its nodes placed; `result` says where the value of a result is to be."""
        body = self.function
        self.made_by = {value: node for node in body.nodes for value in node.results}
        self.next_id = 1 + max(value.id for value in (*body.params, *(v for n in body.nodes for v in n.results)))
        places = self._places()
        for node, place in zip(body.nodes, places, strict=True):
            if self._is_free(node):
                continue  # made again wherever it is read
            if place == SPANS:
                self.nodes.append(self._loop(node))
                continue
            operands = tuple(self._on(value, place) for value in node.operands)
            self.nodes.append(replace(node, operands=operands, origin=replace(node.origin, shard=place)))
        results = tuple(result(number, value) for number, value in enumerate(body.results))
        return replace(body, nodes=tuple(self.nodes), results=results)

    # -- where -------------------------------------------------------------------------------------------

    def _places(self) -> list[int]:
        """The IPU of each node; parameters find theirs on the way."""
        nodes = self.function.nodes
        wanted = [self._scope(node) for node in nodes]
        self._parameters(nodes, wanted)
        for number, node in enumerate(nodes):
            if wanted[number] == SPANS:
                self._settle_loop(node)
                continue
            if wanted[number] < 0:
                wanted[number] = self._of_operands(node)
            self._settle(node, wanted[number])
        reader: dict[Value, int] = {}  # value → IPU of its first reader
        for number in reversed(range(len(nodes))):
            if wanted[number] == SPANS:
                pairs = zip(nodes[number].operands, self.loops[nodes[number]], strict=True)
                reader.update((value, place) for value, place in pairs)
                continue
            if wanted[number] < 0:
                known = [reader[value] for value in nodes[number].results if value in reader]
                wanted[number] = known[0] if known else 0
                self._settle(nodes[number], wanted[number])
            reader.update((value, wanted[number]) for value in nodes[number].operands)
        return wanted

    def _scope(self, node: Node) -> int:
        """What scopes say of a node and of what is inside it."""
        inside = {node.origin.shard} | set(inner_shards(node, self.graph))
        named = sorted(inside - {-1})
        if len(named) > 1 and node.op not in INLINE:
            if only_carries(node):
                return SPANS
            raise InputError(
                f"a {node.op} of layer {node.origin.layer or self.graph.name!r} spans the shards {named}",
                expected="branches, and loops over slices, on one IPU",
                todo="open ipu_shard around it, or write its body out",
            )
        return named[0] if named else -1

    def _parameters(self, nodes: tuple[Node, ...], wanted: list[int]) -> None:
        """Parameters are where a scope reads them first; weights that two shards read are an error."""
        readers: dict[Value, list[int]] = {}
        for node, place in zip(nodes, wanted, strict=True):
            for number, value in enumerate(node.operands):
                inner = reading_shards(node, number, self.graph) if place == SPANS else [place] if place >= 0 else []
                readers.setdefault(value, []).extend(inner)
        for value, described in zip(self.function.params, self._described(), strict=True):
            places = readers.get(value, [])
            if described.role == "parameter" and len(set(places)) > 1:
                raise InputError(
                    f"the variable {described.name!r} of layer {described.layer!r} is used on the IPUs "
                    f"{sorted(set(places))}",
                    expected="one IPU for each variable",
                    todo="open ipu_shard with one number wherever the layer is called",
                )
            if places:
                self.home.setdefault(value, places[0])

    def _described(self) -> tuple[Input, ...]:
        if self.function is self.graph.body:
            return self.graph.inputs
        return tuple(Input(name="", role="argument") for _ in self.function.params)

    def _settle_loop(self, node: Node) -> None:
        """What a loop carries is where its first value is; what has no place yet, where the body reads or makes it."""
        places = []
        for number, value in enumerate(node.operands):
            inner = [*reading_shards(node, number, self.graph), *making_shards(node, number, self.graph), 0]
            places.append(self.home.get(value, inner[0]))
            if any(value is param for param in self.function.params):
                self.home.setdefault(value, places[-1])
        self.loops[node] = tuple(places)
        self.home.update(zip(node.results, places[len(places) - len(node.results) :], strict=True))

    def _of_operands(self, node: Node) -> int:
        """Where most of what a node reads is, -1 when nothing it reads has a place yet."""
        known = [value for value in node.operands if value in self.home]
        return self.home[max(known, key=lambda value: value.size_bytes)] if known else -1

    def _settle(self, node: Node, place: int) -> None:
        """Results are where the node is; parameters nobody else has read come there too. Constants stay free."""
        if place < 0:
            return
        params = set(self.function.params)
        for value in node.operands:
            if value in params:
                self.home.setdefault(value, place)
        if not self._is_free(node):
            self.home.update((value, place) for value in node.results)

    def _is_free(self, node: Node) -> bool:
        """Whether a node makes constants of constants."""
        makers = [self.made_by.get(value) for value in node.operands]
        return node.op in FREE and all(maker is not None and self._is_free(maker) for maker in makers)

    # -- loops -------------------------------------------------------------------------------------------

    def _loop(self, node: Node) -> Node:
        """A loop over bodies whose nodes are placed; every turn leaves a carry where it was."""
        places = self.loops[node]
        operands = tuple(self._on(value, place) for value, place in zip(node.operands, places, strict=True))
        carried = places[len(places) - len(node.results) :]
        calls = []
        for number, name in enumerate(node.calls):
            numbers = operands_of_body(node, number)
            leaves = carried if number == len(node.calls) - 1 else ()
            calls.append(self._body(name, tuple(places[each] for each in numbers), leaves))
        return replace(node, operands=operands, calls=tuple(calls), origin=replace(node.origin, shard=-1))

    def _body(self, name: str, places: tuple[int, ...], leaves: tuple[int, ...]) -> str:
        """The name of a body placed for these IPUs of its parameters and results."""
        placed = f"{name}/shards{'-'.join(map(str, (*places, *leaves)))}"
        if placed not in self.functions:
            function = self.graph.functions[name]
            inner = _Sharding(self.graph, function, self.functions)
            inner.home.update(zip(function.params, places, strict=True))
            made = inner.run(lambda number, value: inner._on(value, leaves[number]) if leaves else value)
            self.functions[placed] = replace(made, name=placed)
        return placed

    # -- copies ------------------------------------------------------------------------------------------

    def _on(self, value: Value, place: int) -> Value:
        """The value on an IPU: itself, a constant made there, or a copy."""
        maker = self.made_by.get(value)
        free = maker is not None and self._is_free(maker)
        if not free and self.home.get(value, place) == place:
            return value
        key = (value, place)
        if key not in self.copies:
            self.copies[key] = self._again(maker, place) if free and maker is not None else self._copy(value, place)
        return self.copies[key]

    def _again(self, maker: Node, place: int) -> Value:
        """A constant made once more, on another IPU."""
        operands = tuple(self._on(value, place) for value in maker.operands)
        result = self._fresh(maker.results[0])
        self.nodes.append(
            replace(maker, operands=operands, results=(result,), origin=replace(maker.origin, shard=place))
        )
        return result

    def _copy(self, value: Value, place: int) -> Value:
        result = self._fresh(value)
        maker = self.made_by.get(value)
        layer = maker.origin if maker is not None else self.function.nodes[0].origin
        origin = replace(layer, shard=place, region="")
        self.nodes.append(Node(COPY, (value,), (result,), attrs(source=self.home[value], to=place), origin))
        return result

    def _fresh(self, value: Value) -> Value:
        self.next_id += 1
        return Value(self.next_id - 1, value.shape, value.dtype)

    def result(self, number: int, value: Value) -> Value:
        """A result of the entry: new values of variables go to where the variable is."""
        updates = self.graph.outputs[number].updates
        if updates is None:
            return value if value in self.home else self._on(value, 0)
        resident = self.graph.inputs[updates].role in RESIDENT_ROLES
        return self._on(value, self.home.get(self.graph.body.params[updates], 0)) if resident else value


def inner_shards(node: Node, graph: Graph) -> Iterator[int]:
    """The IPUs that scopes inside the bodies of a node name, -1 where they name none."""
    for name in node.calls:
        for inner in graph.functions[name].nodes:
            yield inner.origin.shard
            yield from inner_shards(inner, graph)


def only_carries(node: Node) -> bool:
    """Whether a node is a loop that neither slices what it is given nor stacks what it makes."""
    if node.op == "while":
        return True
    carried = int(node.attr("num_carry", 0))
    whole = int(node.attr("num_consts", 0)) + carried == len(node.operands) and carried == len(node.results)
    return node.op == "scan" and whole


def operands_of_body(node: Node, number: int) -> range | list[int]:
    """Which operands of a loop the parameters of its body `number` are, in their order."""
    count = len(node.operands)
    if node.op == "scan":
        return range(count)
    split, first = int(node.attr("cond_consts", 0)), count - len(node.results)
    return [*(range(split, first) if number else range(split)), *range(first, count)]


def reading_shards(node: Node, operand: int, graph: Graph) -> list[int]:
    """The IPUs of scopes that read an operand of a loop in its bodies, in order."""
    found: list[int] = []
    for number, name in enumerate(node.calls):
        numbers = list(operands_of_body(node, number))
        if operand in numbers:
            function = graph.functions[name]
            found += _readers(function, function.params[numbers.index(operand)], graph)
    return found


def making_shards(node: Node, operand: int, graph: Graph) -> list[int]:
    """The IPU of the scope that makes the next value of a loop's operand, if it is carried and a scope makes it."""
    carry = operand - (len(node.operands) - len(node.results))
    function = graph.functions[node.calls[-1]]
    for maker in function.nodes if carry >= 0 else ():
        for number, value in enumerate(maker.results):
            if value is not function.results[carry]:
                continue
            if primitive(maker.op).loops and only_carries(maker):
                return making_shards(maker, len(maker.operands) - len(maker.results) + number, graph)
            return [maker.origin.shard] if maker.origin.shard >= 0 else []
    return []


def _readers(function: Function, value: Value, graph: Graph) -> Iterator[int]:
    for node in function.nodes:
        for number, operand in enumerate(node.operands):
            if operand is not value:
                continue
            if primitive(node.op).loops and only_carries(node):
                yield from reading_shards(node, number, graph)
            elif node.origin.shard >= 0:
                yield node.origin.shard
