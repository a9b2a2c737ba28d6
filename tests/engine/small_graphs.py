"""Graphs of a few nodes, short to write in a test: shapes are inferred, the origin is set around what is written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from workbench.engine.graph import Function, Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.graph.origin import Origin

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min")


class Draft:
    """One function being written; `graph` makes it the entry, `function` a body of another draft's graph."""

    def __init__(self, name: str = "main") -> None:
        self.b = GraphBuilder(name)
        self.origin = Origin()
        self.inputs: list[Input] = []

    @contextmanager
    def at(self, **fields: Any) -> Iterator[None]:
        """What is written inside has this origin."""
        before = self.origin
        self.origin = replace(self.origin, **fields)
        yield
        self.origin = before

    def param(self, name: str, shape: Sequence[int], role: Any = "input", dtype: str = "float32") -> Value:
        layer = name.rpartition("/")[0]
        self.inputs.append(Input(name=name, role=role, layer=layer))
        return self.b.param(tuple(shape), dtype)

    def weight(self, name: str, shape: Sequence[int], dtype: str = "float32") -> Value:
        return self.param(name, shape, "parameter", dtype)

    def node(self, op: str, operands: Sequence[Value], sizes: Sequence[int], kind: str, /, **attributes: Any) -> Value:
        """A node with one result of shape `sizes` and dtype `kind`."""
        (result,) = self.nodes(op, operands, ((tuple(sizes), kind),), **attributes)
        return result

    def nodes(self, op: str, operands: Sequence[Value], types: Sequence[Any], **attributes: Any) -> tuple[Value, ...]:
        return self.b.node(op, tuple(operands), tuple(types), origin=self.origin, **attributes)

    # -- operations --------------------------------------------------------------------------------------

    def point(self, op: str, *operands: Value, dtype: str | None = None, **attributes: Any) -> Value:
        """Element by element; scalars and axes of size 1 repeat."""
        rank = max(len(value.shape) for value in operands)
        shapes = [value.shape for value in operands if len(value.shape) == rank]
        shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
        kind = dtype or ("bool" if op in COMPARISONS else operands[-1].dtype)
        return self.node(op, operands, shape, kind, **attributes)

    def constant(self, value: float, dtype: str = "float32") -> Value:
        return self.node("constant", (), (), dtype, value=value)

    def broadcast(self, value: Value, shape: Sequence[int], dims: Sequence[int] = ()) -> Value:
        return self.node(
            "broadcast_in_dim", (value,), shape, value.dtype, shape=tuple(shape), broadcast_dimensions=tuple(dims)
        )

    def reshape(self, value: Value, *shape: int) -> Value:
        return self.node("reshape", (value,), shape, value.dtype, new_sizes=shape)

    def transpose(self, value: Value, *permutation: int) -> Value:
        shape = [value.shape[axis] for axis in permutation]
        return self.node("transpose", (value,), shape, value.dtype, permutation=permutation)

    def slice(self, value: Value, starts: Sequence[int], limits: Sequence[int]) -> Value:
        shape = [high - low for low, high in zip(starts, limits, strict=True)]
        return self.node(
            "slice",
            (value,),
            shape,
            value.dtype,
            start_indices=tuple(starts),
            limit_indices=tuple(limits),
            strides=(1,) * len(shape),
        )

    def concatenate(self, values: Sequence[Value], dimension: int) -> Value:
        shape = list(values[0].shape)
        shape[dimension] = sum(value.shape[dimension] for value in values)
        return self.node("concatenate", values, shape, values[0].dtype, dimension=dimension)

    def reduce(self, op: str, value: Value, *axes: int) -> Value:
        shape = [size for axis, size in enumerate(value.shape) if axis not in axes]
        return self.node(op, (value,), shape, value.dtype, axes=axes)

    def cast(self, value: Value, dtype: str) -> Value:
        return self.node("convert_element_type", (value,), value.shape, dtype, new_dtype=dtype)

    def dot(self, left: Value, right: Value, contract: tuple[int, int] = (1, 0)) -> Value:
        """[m, k] x [k, n] by default; `contract` names the contracted axis of each."""
        shape = [value.shape[1 - axis] for value, axis in zip((left, right), contract, strict=True)]
        return self.node(
            "dot_general",
            (left, right),
            shape,
            left.dtype,
            lhs_contract=(contract[0],),
            rhs_contract=(contract[1],),
            lhs_batch=(),
            rhs_batch=(),
        )

    def conv(self, images: Value, kernel: Value, **attributes: Any) -> Value:
        """[n, h, w, c] * [kh, kw, c, o], stride 1, padded to the same size."""
        count, height, width, _ = images.shape
        high, wide, _, out = kernel.shape
        pads = tuple(((size - 1) // 2, size // 2) for size in (high, wide))
        chosen: dict[str, Any] = {
            "window_strides": (1, 1),
            "padding": pads,
            "lhs_dilation": (1, 1),
            "rhs_dilation": (1, 1),
            "lhs_spec": (0, 3, 1, 2),
            "rhs_spec": (3, 2, 0, 1),
            "out_spec": (0, 3, 1, 2),
            "feature_group_count": 1,
            "batch_group_count": 1,
            **attributes,
        }
        return self.node("conv_general_dilated", (images, kernel), (count, height, width, out), images.dtype, **chosen)

    # -- whole functions ---------------------------------------------------------------------------------

    def function(self, *results: Value) -> Function:
        return self.b.function(results)

    def graph(
        self,
        *outputs: Value,
        updates: Mapping[str, Value] | None = None,
        bodies: Sequence[Function] = (),
        **fields: Any,
    ) -> Graph:
        """The verified graph: outputs by number, then what parameters (by name) become."""
        changed = dict(updates or {})
        places = {described.name: number for number, described in enumerate(self.inputs)}
        described = [Output(name=f"out{number}") for number in range(len(outputs))]
        described += [Output(name=name, role="update", updates=places[name]) for name in changed]
        main = self.function(*outputs, *changed.values())
        return verify_graph(
            Graph(
                functions={main.name: main, **{body.name: body for body in bodies}},
                entry=main.name,
                inputs=tuple(self.inputs),
                outputs=tuple(described),
                name="small",
                **fields,
            )
        )


def elements(shape: Sequence[int]) -> int:
    return math.prod(shape)


def all_ops(graph: Graph, function: str = "") -> list[str]:
    """The ops of a function in order, bodies of regions and fused chains not followed."""
    return [node.op for node in graph.functions[function or graph.entry].nodes]


def before_and_after(before: Graph, after: Graph) -> str:
    """Both graphs as text, the second verified."""
    return f"{before}\n\n-- becomes --\n\n{verify_graph(after)}\n"


def carried_loop() -> tuple[Graph, Value, Value]:
    """A scan that adds its slices to a carry."""
    body = Draft("body")
    carry, item = body.b.param((8,), "float32"), body.b.param((8,), "float32")
    new = body.point("add", carry, item)
    d = Draft()
    x = d.param("x", (5, 8))
    first = d.point("neg", d.param("first", (8,)))
    (last,) = d.nodes(
        "scan",
        (first, x),
        (((8,), "float32"),),
        calls=("body",),
        times=5,
        num_consts=0,
        num_carry=1,
        length=5,
        reverse=False,
    )
    return d.graph(last, bodies=(body.function(new),)), new, carry


def functions_before_and_after(before: Graph, after: Graph, *names: str) -> str:
    """The functions that are not as they were (of those named), as text: of graphs whose whole text is long."""
    old, new = ({name: str(each) for name, each in graph.functions.items()} for graph in (before, verify_graph(after)))
    told = names or {*old, *new}
    gone = [text for name, text in old.items() if name in told and new.get(name) != text]
    come = [text for name, text in new.items() if name in told and old.get(name) != text]
    return "\n".join([*gone, "", "-- becomes --", "", *come]) + "\n"
