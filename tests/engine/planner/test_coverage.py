"""Every product is computed once, on a tile that has both factors, whatever the problem and the cut."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.planner.cases import conv_node, convs, dot_node, dots, hand_plan, products_of, windows
from tests.engine.vertices.machine import flops_of
from workbench.engine.graph import Node
from workbench.engine.mapping import Placement
from workbench.engine.planner.emission import node_places, operand_order, outputs_shape
from workbench.engine.planner.plan import ConvPlan, Pieces, cutting_of
from workbench.engine.planner.problem import FieldAxis, Planned, problem_of, shape_of
from workbench.engine.planner.search import Settings, plan
from workbench.engine.planner.tiles import cuts_for, read_pieces
from workbench.engine.planner.variant import variants_of
from workbench.engine.planner.vertices import vertices_of
from workbench.engine.target import Target, target

TILES = 12


def machine(tiles: int = TILES) -> Target:
    return target("ipu2", tiles_per_ipu=tiles)


def needs(place: Placement) -> set[tuple[int, int]]:
    """(tile, element) pairs that a demand names."""
    return {(int(t), i) for t, lo, hi in zip(*place.intervals(), strict=True) for i in range(int(lo), int(hi))}


def check_cover(node: Node, planned: Planned, chosen: ConvPlan, tiles: int) -> None:
    places = node_places(node, planned, chosen, tiles)
    streams, held = operand_order(chosen)
    if not chosen.expanded:
        inputs = needs(places.inputs)
    weights, partials = needs(places.weights), needs(places.partials)
    outputs = prod(outputs_shape(node, planned))
    holders: dict[int, set[int]] = {}
    for tile, index in partials:
        holders.setdefault(index % outputs, set()).add(tile)
    for left, right, out in products_of(node):
        factors = (left, right, computed_place(node, planned, out))
        able = [
            tile
            for tile in holders[factors[2]]
            if (tile, factors[held]) in weights and (chosen.expanded or (tile, factors[streams]) in inputs)
        ]
        assert able, f"no tile has both factors of {factors}"
        if not chosen.problem.field:
            # Without a field the parts of tiles do not overlap, so the product is on one tile alone.
            assert len(able) == 1
    assert len(partials) == outputs * places.depth


def computed_place(node: Node, planned: Planned, out: int) -> int:
    """Place of an element of the result among the outputs that zeros are put between."""
    shape = outputs_shape(node, planned)
    if not planned.spread:
        return out
    at = np.unravel_index(out, node.results[0].shape)
    dense = [(place - low) // (gap + 1) for place, (low, _, gap) in zip(at, planned.spread, strict=True)]
    return int(np.ravel_multi_index(dense, shape))


def check_macs(chosen: ConvPlan) -> None:
    """The tiles' shares of the loop nest add up to all of it, and so does what their vertices multiply."""
    cutting = cutting_of(chosen)
    lengths = cutting.lengths()
    shares = prod(lengths.values()) if lengths else np.ones(1, np.int64)
    assert int(np.sum(shares)) == prod(cutting.problem.sizes().values())
    counted = sum(
        flops_of(group.vertex, dict(group.arguments)) * group.count * len(group.tiles)
        for group in vertices_of(chosen, machine())
    )
    assert counted >= 2 * chosen.problem.macs() or chosen.method.vertex == "outer_product"


def planned_case(node: Node, tiles: int = TILES, partials_type: str = "float") -> tuple[Planned, ConvPlan]:
    planned = problem_of(node, partials_type)
    return planned, plan(planned.problem, machine(tiles), Settings())


@given(dots(), st.integers(1, TILES))
def test_products_of_matrices_are_covered(node: Node, tiles: int) -> None:
    planned, chosen = planned_case(node, tiles)
    check_cover(node, planned, chosen, tiles)
    check_macs(chosen)


@given(convs(), st.integers(1, TILES))
def test_convolutions_are_covered(node: Node, tiles: int) -> None:
    planned, chosen = planned_case(node, tiles)
    assert planned.problem.macs() == len(products_of(node))
    check_cover(node, planned, chosen, tiles)
    check_macs(chosen)


@given(st.one_of(dots(), convs()))
def test_operands_are_made_of_the_axes(node: Node) -> None:
    planned = problem_of(node, "float")
    sides = (planned.operands.left, planned.operands.right, planned.operands.out)
    shapes = (node.operands[0].shape, node.operands[1].shape, outputs_shape(node, planned))
    for labels, shape in zip(sides, shapes, strict=True):
        assert prod(shape_of(labels, planned.problem)) == prod(shape)
    assert 2 * len(products_of(node)) == 2 * planned.problem.macs()


@given(st.one_of(dots(), convs()), st.integers(1, TILES))
def test_owners_hold_every_element_once_on_tiles_in_use(node: Node, tiles: int) -> None:
    planned, chosen = planned_case(node, tiles)
    places = node_places(node, planned, chosen, tiles)
    for owned in (places.input_owner, places.weight_owner, places.result):
        assert owned.is_owner
        assert owned.last_tile < chosen.tiles
        count = Counter(index for _, index in needs(owned))
        assert count == dict.fromkeys(range(owned.size), 1)


def test_weights_needed_by_many_tiles_are_shared_out_among_them() -> None:
    node = dot_node((96, 16), (16, 16), ((1,), (0,)))
    planned, chosen = planned_case(node)
    places = node_places(node, planned, chosen, TILES)
    held = places.weight_owner if not chosen.swapped else places.input_owner
    spread = held.elements_per_tile(TILES)
    assert spread.max() <= 2 * max(1, spread[spread > 0].min())


def test_kernels_as_channels_are_gathered_from_the_pixels_they_read() -> None:
    node = conv_node(2, (6, 6), (3, 3), (2, 4), padding=((1, 1), (1, 1)))
    planned = problem_of(node, "float")
    variant = next(variant for variant in variants_of(planned.problem, machine()) if variant.expanded)
    places = node_places(node, planned, hand_plan(planned.problem, variant, b0=2, f0=2, k0=3), TILES)
    assert places.staged_owner.shape == (2, 6, 6, 3, 3, 2)
    staged, pixels, weights = needs(places.inputs), needs(places.staging), needs(places.weights)
    owners = {element: tile for tile, element in needs(places.staged_owner)}
    holders: dict[int, set[int]] = {}
    for tile, index in needs(places.partials):
        holders.setdefault(index % node.results[0].elements, set()).add(tile)
    for left, right, out in products_of(node):
        sample, chan = left // 72, left % 2
        tap = np.unravel_index(right, (3, 3, 2, 4))
        row, column = np.unravel_index(out, (2, 6, 6, 4))[1:3]
        element = int(np.ravel_multi_index((sample, row, column, tap[0], tap[1], chan), (2, 6, 6, 3, 3, 2)))
        assert (owners[element], left) in pixels
        able = [tile for tile in holders[out] if (tile, element) in staged and (tile, right) in weights]
        assert len(able) == 1


def test_boxes_are_shared_out_along_outer_axes_first() -> None:
    # 12 tiles share a box of 4 x 7 x 16: parts of 1 x 3 x 16 on twelve tiles, with the innermost axis in one piece.
    assert cuts_for((4, 7, 16), 12) == (4, 3, 1)
    # 84 tiles share 3 x 3 x 16 x 16: 9 x 9 parts of 2 rows of 16 would cut three axes; rows stay whole.
    assert cuts_for((3, 3, 16, 16), 84)[-1] == 1
    assert prod(cuts_for((3, 3, 16, 16), 84)) <= 84
    # Nothing but the innermost axis is there to be cut: runs of 16.
    assert cuts_for((64,), 100) == (4,)
    assert cuts_for((1024,), 100) == (64,)


@st.composite
def parts_of(draw: st.DrawFn, size: int) -> Pieces:
    """An axis in parts, some without a position, on tiles a fixed way apart."""
    inner = draw(st.lists(st.integers(0, size), max_size=5).map(sorted))
    bounds = np.array([0, *inner, size], np.int64)
    return bounds[:-1], bounds[1:], np.arange(len(bounds) - 1) * draw(st.integers(1, 9))


@given(windows(), st.data())
def test_parts_read_the_positions_of_their_outputs_and_kernel_positions(axis: FieldAxis, data: st.DataObject) -> None:
    outputs, kernels = data.draw(parts_of(axis.out_size)), data.draw(parts_of(axis.kernel))
    wanted = []
    for first, last, tile in zip(*outputs, strict=True):
        for kernel_first, kernel_last, further in zip(*kernels, strict=True):
            read = set(axis.reads(np.arange(first, last), np.arange(kernel_first, kernel_last)).flat) - {-1}
            begins = sorted(at for at in read if at - 1 not in read)
            ends = sorted(at + 1 for at in read if at + 1 not in read)
            wanted += [(lo, hi, tile + further) for lo, hi in zip(begins, ends, strict=True)]
    assert list(zip(*(part.tolist() for part in read_pieces(axis, outputs, kernels)), strict=True)) == wanted
