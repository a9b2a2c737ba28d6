"""The model as data: a module of functions over typed values, with no trace of JAX or Keras left in it.

Encoding: a `Graph` holds named `Function`s and the name of the entry. A `Function` is a list of `Node`s in
an order that respects data flow, over `Value`s that are defined once (parameters or node results). A body that
runs several times (scan, accumulation loop, pipeline stage, outlined block) is stored once as a function and
called by a node whose `calls` names it and whose `times` counts it.

Ops are XLA/JAX primitive names (`"dot_general"`, `"conv_general_dilated"`, `"add"`, `"reduce_sum"`…) as the
frontends deliver them, plus those the graph passes introduce (`"fused"`, `"region"`, `"call"`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.base.text import shown
from workbench.engine.cost import Plain, freeze
from workbench.engine.graph.origin import NOWHERE, Origin
from workbench.errors import VerificationError

Role = Literal["parameter", "optimizer", "accumulator", "state", "seed", "input", "target", "constant", "argument"]
RESIDENT_ROLES = frozenset({"parameter", "optimizer", "accumulator", "state", "seed", "constant"})


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor that is defined once. Identity is the object; `id` is unique within its function."""

    id: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of one element."""
        return ITEMSIZE_BYTES[self.dtype]

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * self.itemsize_bytes

    def __str__(self) -> str:
        return f"%{self.id}:{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation. `attrs` is plain hashable data; `calls` names functions; `times` is how often they run."""

    op: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attrs: tuple[tuple[str, Plain], ...] = ()
    origin: Origin = NOWHERE
    calls: tuple[str, ...] = ()
    times: int = 1

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute, or `default`."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default

    def reading(self, operands: tuple[Value, ...]) -> Node:
        """The node with these operands; itself where they are those it has."""
        if operands == self.operands:
            return self
        return Node(self.op, operands, self.results, self.attrs, self.origin, self.calls, self.times)

    def with_read(self, stands_for: Mapping[Value, Value]) -> Node:
        """The node with each operand replaced by what stands for it; itself where nothing does."""
        if stands_for.keys().isdisjoint(self.operands):
            return self
        return self.reading(tuple([stands_for.get(value, value) for value in self.operands]))

    def __str__(self) -> str:
        left = ", ".join(map(str, self.results))
        right = ", ".join(f"%{value.id}" for value in self.operands)
        attrs = "".join(f" {key}={value}" for key, value in self.attrs)
        calls = f" calls {', '.join('@' + name for name in self.calls)} x{self.times}" if self.calls else ""
        return f"{left} = {self.op}({right}){attrs}{calls}  ; {self.origin}"


def attrs(**values: Any) -> tuple[tuple[str, Plain], ...]:
    """Attributes sorted by name, lists and numpy scalars turned into plain hashable data."""
    return tuple(sorted((name, freeze(value)) for name, value in values.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A body: parameters, nodes in data-flow order, results (each a parameter or a node's result)."""

    name: str
    params: tuple[Value, ...]
    results: tuple[Value, ...]
    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        head = f"@{self.name}({', '.join(map(str, self.params))})"
        body = "\n".join(f"  {node}" for node in self.nodes)
        return f"{head} {{\n{body}\n  return {', '.join(f'%{value.id}' for value in self.results)}\n}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What an entry parameter is: its role, the user's name for it, and the layer it belongs to.

    `of` names what an accumulator adds up: the parameter whose gradients, or the output, go into it.
    """

    name: str
    role: Role
    layer: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What an entry result is. `updates` is the index of the entry parameter it is the new value of, if any."""

    name: str
    role: Literal["output", "loss", "metric", "update"] = "output"
    updates: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A model or training step: functions, the entry, and what the entry's parameters and results mean.

    `unmodelled` is filled by no pass: families that fall back to the generic rule are found at lowering.
    """

    functions: Mapping[str, Function]
    entry: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    name: str = "model"
    batch_size: int = 1
    mode: Literal["training", "inference", "function"] = "function"
    assumptions: tuple[str, ...] = ()
    meta: Mapping[str, Plain] = field(default_factory=dict)

    @property
    def body(self) -> Function:
        """The entry function."""
        return self.functions[self.entry]

    def is_but_for_words(self, other: Graph) -> bool:
        """Whether both are one graph, with the very same functions, of which maybe other things are assumed."""
        return self is other or (
            self.functions is other.functions
            and (self.entry, self.name, self.batch_size, self.mode)
            == (other.entry, other.name, other.batch_size, other.mode)
            and self.inputs is other.inputs
            and self.outputs is other.outputs
            and self.meta is other.meta
        )

    def __str__(self) -> str:
        roles = ", ".join(f"{shown(item.name)}:{item.role}" for item in self.inputs)
        rest = [str(fn) for name, fn in self.functions.items() if name != self.entry]
        return "\n".join([f"graph {shown(self.name)} entry @{self.entry} [{roles}]", str(self.body), *rest])


def walk(graph: Graph) -> Iterator[tuple[Function, Node]]:
    """Every node of every function, each once."""
    for function in graph.functions.values():
        for node in function.nodes:
            yield function, node


def _verify_function(graph: Graph, function: Function) -> None:
    defined = set(function.params)
    for node in function.nodes:
        if not defined.issuperset(node.operands):
            value = next(value for value in node.operands if value not in defined)
            raise VerificationError(f"@{function.name}: {node} uses {value} before it is defined")
        for value in node.results:
            if value in defined:
                raise VerificationError(f"@{function.name}: {value} is defined twice")
            defined.add(value)
        for name in node.calls:
            if name not in graph.functions:
                raise VerificationError(f"@{function.name}: {node} calls unknown @{name}")
    for value in function.results:
        if value not in defined:
            raise VerificationError(f"@{function.name} returns {value}, which nothing defines")


def verify_graph(graph: Graph, known: Graph | None = None) -> Graph:
    """Check the rules of the encoding and return the graph; a broken rule is a `VerificationError`.

    Functions that the verified graph `known` has too are not looked at again, unless one they may call is gone.
    """
    if graph.entry not in graph.functions:
        raise VerificationError(f"the entry @{graph.entry} is not among the functions")
    same = known.functions if known is not None and known.functions.keys() <= graph.functions.keys() else {}
    for name, function in graph.functions.items():
        if function is not same.get(name):
            _verify_function(graph, function)
    body = graph.body
    if len(graph.inputs) != len(body.params) or len(graph.outputs) != len(body.results):
        raise VerificationError("inputs and outputs must describe every parameter and result of the entry")
    for output, value in zip(graph.outputs, body.results, strict=True):
        if output.updates is None:
            continue
        param = body.params[output.updates]
        if (param.shape, param.dtype) != (value.shape, value.dtype):
            raise VerificationError(f"{output.name} updates {param} with {value}: types differ")
    return graph


@dataclass(slots=True)
class GraphBuilder:
    """Collects the nodes of one function; frontends, passes and tests make functions with it."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    params: list[Value] = field(default_factory=list)
    next_id: int = 0

    def value(self, shape: tuple[int, ...], dtype: str) -> Value:
        """A fresh value."""
        self.next_id += 1
        return Value(self.next_id - 1, tuple(int(size) for size in shape), dtype)

    def param(self, shape: tuple[int, ...], dtype: str) -> Value:
        """A fresh parameter of the function."""
        self.params.append(self.value(shape, dtype))
        return self.params[-1]

    def node(
        self,
        op: str,
        operands: tuple[Value, ...],
        types: tuple[tuple[tuple[int, ...], str], ...],
        *,
        origin: Origin = NOWHERE,
        calls: tuple[str, ...] = (),
        times: int = 1,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Append a node with results of the given (shape, dtype) and return the results."""
        results = tuple(self.value(shape, dtype) for shape, dtype in types)
        self.nodes.append(Node(op, operands, results, attrs(**attributes), origin, calls, times))
        return results

    def function(self, results: tuple[Value, ...]) -> Function:
        """The finished function."""
        return Function(self.name, tuple(self.params), results, tuple(self.nodes))
