"""Evaluates a graph with numpy, node by node: what passes must leave as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.engine.graph import Function, Graph, Node

Array = Any

POINTWISE: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "tanh": np.tanh,
    "square": np.square,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
}
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "reduce_sum": lambda value, axis: np.sum(_wide(value), axis),
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_square_sum": lambda value, axis: np.sum(_wide(np.square(value)), axis),
}


def _wide(value: Array) -> Array:
    """What a sum adds: partials of half values are single, or a pass that only changes their order would not pass."""
    return value.astype("float32") if value.dtype == "float16" else value


def evaluate(graph: Graph, values: Sequence[Array]) -> list[Array]:
    """The results of the entry for values of its parameters."""
    env = {id(param): value for param, value in zip(graph.body.params, values, strict=True)}
    _run(graph, graph.body, env)
    return [env[id(value)] for value in graph.body.results]


def _run(graph: Graph, function: Function, env: dict[int, Array]) -> None:
    for node in function.nodes:
        if node.op in ("fused", "region"):
            _run(graph, graph.functions[node.calls[0]], env)
            continue
        if node.op == "call":
            called = graph.functions[node.calls[0]]
            inside = {id(param): env[id(value)] for param, value in zip(called.params, node.operands, strict=True)}
            _run(graph, called, inside)
            env.update((id(value), inside[id(made)]) for value, made in zip(node.results, called.results, strict=True))
            continue
        result = _compute(node, [env[id(value)] for value in node.operands])
        value = node.results[0]
        assert result.shape == value.shape, node
        env[id(value)] = np.asarray(result, dtype=value.dtype)


def _compute(node: Node, operands: list[Array]) -> Array:
    if node.op in POINTWISE:
        return POINTWISE[node.op](*operands)
    if node.op in REDUCTIONS:
        return REDUCTIONS[node.op](operands[0], axis=node.attr("axes"))
    return OTHER[node.op](node, *operands)


def _broadcast(node: Node, value: Array) -> Array:
    shape = [1] * len(node.attr("shape"))
    for axis, size in zip(node.attr("broadcast_dimensions"), value.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(value.reshape(shape), node.attr("shape"))


def _slice(node: Node, value: Array) -> Array:
    strides = node.attr("strides") or (1,) * len(node.attr("start_indices"))
    cut = zip(node.attr("start_indices"), node.attr("limit_indices"), strides, strict=True)
    return value[tuple(slice(*part) for part in cut)]


def _known_rows(node: Node, value: Array) -> Array:
    parts = zip(node.attr("firsts"), node.attr("counts"), strict=True)
    return np.concatenate([value[first : first + count] for first, count in parts])


def _dot(node: Node, left: Array, right: Array) -> Array:
    return np.tensordot(_wide(left), _wide(right), (node.attr("lhs_contract"), node.attr("rhs_contract")))


def _conv(node: Node, images: Array, kernel: Array) -> Array:
    """Channels last, stride 1, same size: one product per place of the kernel."""
    low_high = node.attr("padding")
    padded = np.pad(_wide(images), ((0, 0), *low_high, (0, 0)))
    high, wide = images.shape[1:3]
    places = [(y, x) for y in range(kernel.shape[0]) for x in range(kernel.shape[1])]
    return sum(padded[:, y : y + high, x : x + wide] @ _wide(kernel[y, x]) for y, x in places)


OTHER: dict[str, Callable[..., Array]] = {
    "known_rows": _known_rows,
    "rev": lambda node, value: np.flip(value, tuple(node.attr("dimensions"))),
    "squeeze": lambda node, value: value.reshape(node.results[0].shape),
    "expand_dims": lambda node, value: value.reshape(node.results[0].shape),
    "optimization_barrier": lambda node, value: value,
    "constant": lambda node: np.asarray(node.attr("value"), dtype=node.results[0].dtype),
    "broadcast_in_dim": _broadcast,
    "reshape": lambda node, value: value.reshape(node.results[0].shape),
    "transpose": lambda node, value: value.transpose(node.attr("permutation")),
    "slice": _slice,
    "concatenate": lambda node, *values: np.concatenate(values, axis=node.attr("dimension")),
    "convert_element_type": lambda node, value: value.astype(node.results[0].dtype),
    "select_n": lambda node, which, *cases: np.where(which, cases[1], cases[0]),
    "dot_general": _dot,
    "conv_general_dilated": _conv,
}


def values_for(graph: Graph) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.uniform(-1, 1, value.shape).astype(value.dtype) for value in graph.body.params]


def assert_same_meaning(before: Graph, after: Graph, tolerance: float = 1e-3) -> None:
    """Both graphs compute the same numbers."""
    values = values_for(before)
    with np.errstate(all="ignore"):
        pairs = zip(evaluate(before, values), evaluate(after, values), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(one.astype("float64"), other.astype("float64"), rtol=tolerance, atol=tolerance)
