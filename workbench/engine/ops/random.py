"""Random numbers: keys are a few bytes, hashed where they are; bits are drawn by the hardware generators of every tile.

Drawing seeds each tile's six generators from the key first, as poprand does when it is given a seed
(poplibs@7eac0f26 lib/poprand/RandomGen.cpp).
"""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Mapping, concatenate, needed_by, on_tile, reshape, slice_
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.ops import Family, register
from workbench.engine.program import VertexGroup

# Threefry-2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): 20 rounds of an addition, a
# rotation (two shifts and an or) and an exclusive or; a key schedule of three operations every four rounds and first.
_ROUND = ("ADD", "SHIFT_LEFT", "SHIFT_RIGHT", "BITWISE_OR", "BITWISE_XOR")
_INJECTION = ("ADD", "ADD", "ADD")
THREEFRY = tuple((op, "unsigned int") for op in (*_INJECTION, *(_ROUND * 4 + _INJECTION) * 5))
SEED = (("SHIFT_RIGHT", "unsigned int"), ("BITWISE_AND", "unsigned int"))
WORD_BITS = 32


class Keys(Family):
    """A key and the words it is made of, or elements and their parts of another size: the same bytes."""

    name = "random_keys"
    ops = frozenset({"random_wrap", "random_unwrap", "bitcast_convert_type"})
    pure_view = True
    before = ("views",)  # which has what keeps its shape
    shareable = True

    def claims(self, node: Node) -> bool:
        """Whenever the shape changes; the rest is a view of equal elements."""
        return node.operands[0].shape != node.results[0].shape

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The result is its operand."""
        return ((0, 0),)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bind the result to the operand's memory."""
        source, value = lowering.get(node.operands[0]), node.results[0]
        if len(value.shape) < len(source.shape):
            first = slice_(source.mapping, [0] * len(source.shape), [*value.shape, 1])
            mapping = reshape(first, value.shape)
        else:
            column = reshape(source.mapping, (*source.shape, 1))
            mapping = concatenate([column] * value.shape[-1], len(source.shape))
        lowering.bind(
            value,
            Tensor(variables=source.variables, mapping=mapping, shape=value.shape, dtype=value.dtype, ipu=source.ipu),
        )


class Hash(Family):
    """New keys from keys, and blocks of Threefry: integer operations on the tiles of the results."""

    name = "random_hash"
    ops = frozenset({"random_seed", "random_split", "random_fold_in", "threefry2x32"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring the operands to the results and hash."""
        value = node.results[0]
        mapping = lowering.wish(value) or lowering.default_mapping(value)
        label = lowering.label(node)
        held = lowering.emit.rearrange(
            label, [(tensor, _wanted(tensor, value, mapping)) for tensor in lowering.operands(node)]
        )
        results = [lowering.result(node, number, mapping) for number in range(len(node.results))]
        groups = vertex_groups(
            "popops::MapExpression",
            {"n": mapping.elements_per_tile(lowering.tiles)},
            loads=("unsigned int",) * len(held),
            stores=("unsigned int",) * 2,
            operations=SEED if node.op == "random_seed" else THREEFRY,
        )
        reads = [name for tensor in held for name in tensor.variables]
        lowering.emit.compute(label, groups, reads, [name for tensor in results for name in tensor.variables])


class Bits(Family):
    """Random bits of any shape from one key."""

    name = "random_bits"
    ops = frozenset({"random_bits", "rng_bit_generator", "rng_uniform"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Three per floating-point number that is drawn, none for bits."""
        return 3 * node.results[-1].elements if node.op == "rng_uniform" else 0

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Broadcast the key, seed every tile that holds results, draw."""
        value = node.results[-1]
        mapping = lowering.wish(value) or lowering.default_mapping(value)
        label = lowering.label(node)
        sources = lowering.operands(node)
        held = lowering.emit.rearrange(label, [(_first(tensor), needed_by(mapping, (), ())) for tensor in sources])
        reads = [name for tensor in held for name in tensor.variables]
        if len(node.results) == 2:  # the generator's next state, kept where the state is
            lowering.bind(node.results[0], sources[0])
        result = lowering.result(node, len(node.results) - 1, mapping)
        elements = mapping.elements_per_tile(lowering.tiles)
        seeds = [VertexGroup("poprand::SetSeed", (), tile_set(np.flatnonzero(elements)))]
        lowering.emit.compute(f"{label}/seed", seeds, reads, ())
        if node.op == "rng_uniform":
            draws = vertex_groups("poprand::Uniform", {"n": elements}, type=_float_word(value))
        else:
            words = ceil_div(elements * value.itemsize_bytes * 8, WORD_BITS)
            draws = vertex_groups("poprand::Uniform", {"n": words}, type="int", full_range=True)
        lowering.emit.compute(label, draws, reads, result.variables)


def _wanted(tensor: Tensor, value: Value, mapping: Mapping) -> Mapping:
    """Operands of the result's shape lie as it does; others are tiny and go whole to the tile of its first element."""
    if tensor.shape == value.shape:
        return mapping
    first = int(mapping.runs()[1][0]) if value.elements else 0
    return on_tile(tensor.shape, first)


def _first(tensor: Tensor) -> Tensor:
    """The first element: a key is one value, whatever it is part of."""
    rank = len(tensor.shape)
    return tensor.view(reshape(slice_(tensor.mapping, [0] * rank, [1] * rank), ()), ())


def _float_word(value: Value) -> str:
    return "half" if value.itemsize_bytes == 2 else "float"


register(Keys())
register(Hash())
register(Bits())
