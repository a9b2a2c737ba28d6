"""Sorts and the largest k by PopLibs' bitonic network, and running sums, products and extremes along an axis.

A network of n log²(n)/2 comparisons: before each step the pairs to compare are brought together on a tile. Sorting is
keeping the largest n of n. (poplibs@7eac0f26 lib/popops/Sort.cpp, lib/popops/BitonicTopK.cpp)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Mapping, reshape, runs_of_elements, transpose
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.program import VertexGroup
from workbench.engine.remembered import remembered


@dataclass(frozen=True, slots=True)
class SortStep:
    """Compare elements `distance` apart among the first `size`; the order turns every `turn`; `keep` remain."""

    size: int
    distance: int
    turn: int
    keep: int


def bitonic_steps(size: int, k: int) -> Iterator[SortStep]:
    """The network that leaves the k extreme of `size` elements sorted.

    Sequences of k' (the next power of two) are sorted, then pairs of them merged, of which the lower half is dropped.
    """
    log_k, log_n = (k - 1).bit_length(), (size - 1).bit_length()
    whole = 1 << log_k
    for merge in range(log_n):
        level = min(merge, log_k)
        turn = 1 << level if merge < log_k else 1 << (log_n - 1)
        keep = size
        if level >= log_k and size > whole:
            pairs = size // (2 * whole)
            keep = pairs * whole + min(size - pairs * 2 * whole, whole)
        yield SortStep(size, 1 << level, turn, keep)
        size = keep
        for inner in reversed(range(level)):
            yield SortStep(size, 1 << inner, min(1 << level, 1 << max(0, log_k - 1)), size)


class Sort(Family):
    """Sorts one operand, others moving along with it."""

    name = "sort"
    ops = frozenset({"sort"})
    alone = True

    def claims(self, node: Node) -> bool:
        """Whenever there is something to sort."""
        return node.results[0].elements > 0

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Run the network over the sorted axis."""
        axis = int(node.attr("dimension", len(node.operands[0].shape) - 1))
        sources = [_rows_first(tensor, axis) for tensor in lowering.operands(node)]
        stable = bool(node.attr("is_stable", False)) or int(node.attr("num_keys", 1)) > 1
        _network(node, lowering, sources, node.operands[0].shape[axis], axis, secondary=stable)


class TopK(Family):
    """The k largest along the last axis, and their places."""

    name = "top_k"
    ops = frozenset({"top_k"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Number the elements, run the network that keeps k."""
        source, label = lowering.get(node.operands[0]), lowering.label(node)
        axis = int(node.attr("axis", len(source.shape) - 1)) % len(source.shape)
        kind = node.results[1].dtype
        places = lowering.emit.tensor(f"{label}/places", source.shape, kind, source.mapping, "temporary")
        groups = vertex_groups("popops::Iota", {"n": source.elements_per_tile(lowering.tiles)}, type=DTYPE_WORDS[kind])
        lowering.emit.compute(f"{label}/places", groups, (), places.variables)
        sources = [_rows_first(tensor, axis) for tensor in (source, places)]
        _network(node, lowering, sources, int(node.results[0].shape[axis]), axis, secondary=False)


def _rows_first(tensor: Tensor, axis: int) -> Tensor:
    """The tensor as [sorted axis, the rest], flat."""
    order = (axis, *(other for other in range(len(tensor.shape)) if other != axis))
    mapping = reshape(transpose(tensor.mapping, order), (tensor.elements,))
    return tensor.view(mapping, (tensor.elements,))


def _network(node: Node, lowering: Lowering, held: list[Tensor], k: int, axis: int, *, secondary: bool) -> None:
    shape = node.operands[0].shape
    others = prod(shape) // shape[axis]
    label, tiles = lowering.label(node), lowering.tiles
    steps = list(bitonic_steps(shape[axis], k))
    for number, step in enumerate(steps):
        wanted = compared_together(step.size * others, step.distance * others, tiles)
        name = f"{label}/step{number}"
        held = lowering.emit.rearrange(name, [(tensor, wanted) for tensor in held])
        pairs = pairs_per_tile(step.size * others, step.distance * others, tiles)
        groups = _swap_groups(held, pairs, step, others, secondary=secondary)
        names = [variable for tensor in held for variable in tensor.variables]
        if number == len(steps) - 1:
            kept = [_kept(tensor, step, others) for tensor in held]
            results = [
                lowering.result(node, index, _rows_back(tensor.mapping, value, axis, k * others))
                for index, (tensor, value) in enumerate(zip(kept, node.results, strict=True))
            ]
            lowering.emit.compute(name, groups, names, [v for tensor in results for v in tensor.variables])
            return
        held = _owned(held, lowering, name, names, groups)
        held = [_kept(tensor, step, others) for tensor in held]
    for value, tensor in zip(node.results, held, strict=True):
        lowering.bind(value, tensor.view(_rows_back(tensor.mapping, value, axis, k * others), value.shape))


def _owned(
    held: list[Tensor], lowering: Lowering, name: str, names: list[int], groups: list[VertexGroup]
) -> list[Tensor]:
    """Swap in place in temporaries; what still lies in an operand's memory is copied by the first step."""
    own = [
        tensor
        if all(lowering.emit.variables[variable].kind == "temporary" for variable in tensor.variables)
        else lowering.emit.tensor(f"{name}/copy", tensor.shape, tensor.dtype, tensor.mapping, "temporary")
        for tensor in held
    ]
    lowering.emit.compute(name, groups, names, [variable for tensor in own for variable in tensor.variables])
    return own


def _rows_back(mapping: Mapping, value: Value, axis: int, size: int) -> Mapping:
    """The mapping of the result, given that of [sorted axis, the rest] flat, of which the first `size` count."""
    if mapping.size != size:
        mapping = runs_of_elements((size,), mapping.tile_of_elements()[:size])
    rest = [extent for other, extent in enumerate(value.shape) if other != axis]
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(value.shape))]
    return transpose(reshape(mapping, (value.shape[axis], *rest)), order)


def _kept(tensor: Tensor, step: SortStep, others: int) -> Tensor:
    """What remains after a merge: the lower half of every pair of sequences."""
    if step.keep == step.size:
        return tensor
    index = np.arange(step.size * others, dtype=np.int64) // others
    chosen = index // step.distance % 2 == 0
    owners = tensor.mapping.tile_of_elements()[chosen]
    return replace(tensor, mapping=runs_of_elements((len(owners),), owners), shape=(len(owners),))


@remembered(512)
def compared_together(size: int, distance: int, tiles: int) -> Mapping:
    """The mapping that has the elements of every pair on one tile, pairs in order and evenly over the tiles."""
    element = np.arange(size, dtype=np.int64)
    block, place = element // (2 * distance), element % (2 * distance)
    lower = np.where(place < distance, element, element - distance)
    paired = lower + distance < size
    pair = block * distance + place % distance
    share = ceil_div(max(1, _pairs(size, distance)), tiles)
    owner = np.where(paired, pair // share, element % tiles)
    return runs_of_elements((size,), np.minimum(owner, tiles - 1))


def _pairs(size: int, distance: int) -> int:
    """Pairs of elements `distance` apart, in blocks of twice the distance."""
    blocks, rest = divmod(size, 2 * distance)
    return blocks * distance + max(0, rest - distance)


def pairs_per_tile(size: int, distance: int, tiles: int) -> IntArray:
    """int64[tiles]: an even share of the pairs on the first tiles."""
    pairs = _pairs(size, distance)
    share = ceil_div(max(1, pairs), tiles)
    return np.clip(pairs - np.arange(tiles, dtype=np.int64) * share, 0, share)


def _swap_groups(
    held: Sequence[Tensor], pairs: IntArray, step: SortStep, others: int, *, secondary: bool
) -> list[VertexGroup]:
    """Compare and swap the keys; every further operand is carried by a vertex of its own."""
    key = _sorted_word(held[0])
    fixed = {
        "key_type": key,
        "distance": step.distance * others,
        "distance_to_change_order": step.turn * others,
    }
    if len(held) == 1:
        return vertex_groups("popops::CompareAndSwapAtDistance", {"pairs": pairs}, **fixed)
    return [
        group
        for number, value in enumerate(held[1:])
        for group in vertex_groups(
            "popops::CompareAndSwapAtDistanceKeyVal",
            {"pairs": pairs},
            value_type=_sorted_word(value),
            values_are_secondary_key=secondary and number == 0,
            **fixed,
        )
    ]


def _sorted_word(tensor: Tensor) -> str:
    """The type in which elements are compared: halves are sorted as floats."""
    word = DTYPE_WORDS[tensor.dtype]
    return "float" if word == "half" else word


register(Sort())
register(TopK())
