"""Views: reshape, transpose, slice, reverse, concatenate, pad and the like only say how the same memory is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine import mapping as maps
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Mapping, Padding
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.free import fill_groups


class Views(Family):
    """Operators of one operand that move nothing."""

    name = "views"
    ops = frozenset(
        {
            "reshape",
            "squeeze",
            "expand_dims",
            "transpose",
            "slice",
            "rev",
            "bitcast_convert_type",
            "copy",
            "copy_p",
            "stop_gradient",
            "optimization_barrier",
            "pvary",
            "split",
            "unstack",
            "tile",
        }
    )
    pure_view = True
    light = True
    shareable = True

    def claims(self, node: Node) -> bool:
        """A bitcast between element sizes changes the shape and is left to the generic rule."""
        if node.op == "bitcast_convert_type":
            return node.operands[0].shape == node.results[0].shape
        return True

    def handed_back(self, node: Node, wished: Mapping) -> dict[int, Mapping]:
        """The operand so that what is seen of it lies as wished."""
        back = view_back(node, wished)
        return {} if back is None else {0: back}

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """Every result is its operand."""
        if node.op == "optimization_barrier":
            return tuple((index, index) for index in range(len(node.results)))
        return ((0, 0),)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bind the results to views of the operands."""
        if node.op == "optimization_barrier":
            for value, operand in zip(node.results, node.operands, strict=True):
                lowering.bind(value, lowering.get(operand))
            return
        source = lowering.get(node.operands[0])
        if node.op in ("split", "unstack"):
            _split(node, source, lowering)
            return
        value = node.results[0]
        seen = source.view(view_mapping(node, source.mapping), value.shape)
        lowering.bind(value, replace(seen, dtype=value.dtype))


def _split(node: Node, source: Tensor, lowering: Lowering) -> None:
    axis = int(node.attr("axis"))
    start = 0
    for value in node.results:
        low = [0] * len(source.shape)
        high = list(source.shape)
        low[axis], high[axis] = start, start + (value.shape[axis] if node.op == "split" else 1)
        start = high[axis]
        part = maps.slice_(source.mapping, low, high)
        lowering.bind(value, source.view(maps.reshape(part, value.shape), value.shape))


def view_mapping(node: Node, mapping: Mapping) -> Mapping:
    """The mapping of the node's result, given that of its operand."""
    if node.op in ("reshape", "squeeze", "expand_dims"):
        return maps.reshape(mapping, node.results[0].shape)
    if node.op == "transpose":
        return maps.transpose(mapping, node.attr("permutation"))
    if node.op == "slice":
        return maps.slice_(
            mapping, node.attr("start_indices"), node.attr("limit_indices"), node.attr("strides") or None
        )
    if node.op == "rev":
        return maps.reverse(mapping, node.attr("dimensions"))
    if node.op == "tile":
        return _tiled(mapping, node.attr("reps"))
    return mapping


def _tiled(mapping: Mapping, reps: tuple[int, ...]) -> Mapping:
    """The tensor behind itself as often as `reps` says along each axis."""
    for axis, count in enumerate(reps):
        mapping = maps.concatenate([mapping] * count, axis)
    return mapping


def view_back(node: Node, mapping: Mapping) -> Mapping | None:
    """The mapping of the operand under which the result would have `mapping`; None where there is none."""
    if node.op in ("reshape", "squeeze", "expand_dims"):
        return maps.reshape(mapping, node.operands[0].shape)
    if node.op == "transpose":
        permutation = list(node.attr("permutation"))
        return maps.transpose(mapping, [permutation.index(axis) for axis in range(len(permutation))])
    if node.op in ("copy", "stop_gradient", "bitcast_convert_type"):
        return mapping
    return None


class Joins(Family):
    """Concatenate, and stack along a new axis: the result is held by all the operands' variables."""

    name = "joins"
    ops = frozenset({"concatenate", "stack"})
    pure_view = True

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bind the result to the joined view."""
        sources = lowering.operands(node)
        value = node.results[0]
        axis = int(node.attr("dimension", node.attr("axis")))
        parts = [source.mapping for source in sources]
        if node.op == "stack":
            layer = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
            parts = [maps.reshape(part, layer) for part in parts]
        mapping = maps.concatenate(parts, axis)
        variables = tuple(dict.fromkeys(name for source in sources for name in source.variables))
        ipu = sources[0].ipu
        lowering.bind(
            value, Tensor(variables=variables, mapping=mapping, shape=value.shape, dtype=value.dtype, ipu=ipu)
        )


class Pad(Family):
    """Pad: a view of the operand and of a filled border, which is spread over the tiles like any other tensor.

    The driver makes the border a view of its one value, of no memory, and gives every element of it memory of its own,
    mapped linearly from where the last such mapping ended, for the first that reads it (graphcore/tensorflow@b2127bba
    tensorflow/compiler/plugin/poplar/driver/tensor.cc PadTensor, RebalanceTensorIfRequired; poplibs@7eac0f26
    lib/poputil/TileMapping.cpp cloneAndExpandAliasing). Here it has that memory at once, and what stands between
    elements lies behind them where that is as even, which keeps pieces long.
    """

    name = "pad"
    ops = frozenset({"pad"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Fill the border if there is one and bind the result to the joined view."""
        source, value = lowering.get(node.operands[0]), node.results[0]
        change = maps.padding(source.shape, *(node.attr(name) for name in ("low", "high", "interior")))
        if not change.border_elements:
            kept = maps.slice_(source.mapping, change.starts, change.limits)
            lowering.bind(value, source.view(kept, value.shape))
            return
        mapping, border = _bordered(source, change, value.dtype, lowering)
        variable = self._border(node, border, lowering)
        held = (*source.variables, variable) if change.kept_elements else (variable,)
        lowering.bind(value, replace(source.view(mapping, value.shape), variables=held))

    def _border(self, node: Node, placed: Mapping, lowering: Lowering) -> int:
        """A filled variable."""
        label, dtype = lowering.label(node), node.results[0].dtype
        variable = lowering.emit.new(f"{label}/border", placed.shape, dtype, placed, "temporary")
        filler = lowering.get(node.operands[1]).variables
        counts = placed.elements_per_tile(lowering.tiles)
        lowering.emit.compute(
            f"{label}/fill", fill_groups(counts, dtype, lowering.target.workers_per_tile), filler, (variable,)
        )
        return variable


def _bordered(source: Tensor, change: Padding, dtype: str, lowering: Lowering) -> tuple[Mapping, Mapping]:
    """The padded view, and what is added to it as a mapping of one axis."""

    def spread(part: Padding) -> Mapping:
        return lowering.default_mapping(Value(-1, (part.border_elements,), dtype))

    if not change.within.border_elements:
        border = spread(change)
        return maps.pad(source.mapping, change, border), border
    dilated = maps.pad_beside(source.mapping, change.within)
    if not lowering.is_even(dilated, dtype):
        border = spread(change)
        return maps.pad(source.mapping, change, border), border
    kept = maps.slice_(source.mapping, change.starts, change.limits)
    gaps = _of_counts(dilated.elements_per_tile(lowering.tiles) - kept.elements_per_tile(lowering.tiles))
    if not change.around.border_elements:
        return dilated, gaps
    border = spread(change.around)
    return maps.pad(dilated, change.around, border), maps.concatenate([gaps, border], 0)


def _of_counts(elements: IntArray) -> Mapping:
    """So many elements on each tile."""
    tiles = np.flatnonzero(elements)
    starts = np.append(0, np.cumsum(elements[tiles]))[:-1]
    return maps.runs((int(elements.sum()),), starts, tiles)


register(Views())
register(Joins())
register(Pad())
