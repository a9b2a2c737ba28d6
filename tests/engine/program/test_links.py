"""The ladder: routes, shares and orders worked out by hand from the figure of 16 IPUs."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.engine.program.links import route, topology, width
from workbench.engine.target import targets

IPU2 = targets["ipu2"]


def test_routes_cross_the_rung_first() -> None:
    assert route(0, 1) == (("pair", 0),)
    assert route(0, 4) == (("up", 0), ("up", 2))
    assert route(6, 2) == (("down", 6), ("down", 4))
    assert route(1, 4) == (("cross", 1), ("up", 0), ("up", 2))
    assert route(5, 5) == ()


@given(st.integers(0, 63), st.integers(0, 63))
def test_a_route_leaves_its_source_and_ends_at_its_destination(source: int, destination: int) -> None:
    here = source
    for kind, ipu in route(source, destination):
        assert ipu == here
        here = {"pair": ipu ^ 1, "cross": ipu ^ 1, "up": ipu + 2, "down": ipu - 2}[kind]
    assert here == destination
    assert len(route(source, destination)) == len(route(destination, source))


@pytest.mark.parametrize(
    ("selection", "hops"),
    [("ZIGZAG", [1, 2, 1]), ("SNAKE", [1, 1, 1]), ("HOOF", [1, 1, 1]), ("AUTO", [1, 1, 1])],
)
def test_neighbouring_stages_are_as_far_as_the_order_says(selection: str, hops: list[int]) -> None:
    placed = topology(selection, 4)
    assert [placed.way(s, s + 1, IPU2).hops for s in range(3)] == hops
    assert placed.way(3, 0, IPU2).hops == {"ZIGZAG": 2, "SNAKE": 1, "HOOF": 1, "AUTO": 1}[selection]


def test_pairs_have_four_links_and_other_neighbours_two() -> None:
    placed = topology("SNAKE", 4)  # 0 1 3 2
    assert [placed.way(s, s + 1, IPU2).links for s in range(3)] == [4, 2, 4]


def test_three_shards_take_three_of_four_ipus_and_replicas_the_next_four() -> None:
    placed = topology("SNAKE", 3, 2)
    assert [placed.ipu(s) for s in range(3)] == [0, 1, 3]
    assert [placed.ipu(s, 1) for s in range(3)] == [4, 5, 7]


def test_auto_is_by_number_without_a_pipeline() -> None:
    assert topology("AUTO", 4, pipelined=False).order == (0, 1, 2, 3)


def test_rings_of_single_ipus_go_up_one_side_and_down_the_other() -> None:
    two = topology("AUTO", 1, 2).ring(2, 1, IPU2)
    assert (two.hops, two.links, two.streams) == (1, 4, 1)
    sixteen = topology("AUTO", 1, 16).ring(16, 1, IPU2)
    assert (sixteen.hops, sixteen.links, sixteen.streams) == (1, 2, 1)


def test_rings_of_four_ipus_share_their_links() -> None:
    found = topology("SNAKE", 4, 4).ring(4, 4, IPU2)
    assert (found.links, found.streams) == (2, 2)


@given(st.integers(2, 16), st.sampled_from([1, 2, 4]))
def test_no_ring_is_better_than_its_busiest_bundle(group: int, shards: int) -> None:
    """Every shard's data leaves its IPU once, so the streams over any cut are at least as many as the shards above."""
    placed = topology("SNAKE", shards, group)
    found = placed.ring(group, shards, IPU2)
    assert found.streams / found.links >= 1 / IPU2.links_inside_pair
    chain = [route(placed.ipu(s, r), placed.ipu(s, (r + 1) % group)) for r in range(group) for s in range(shards)]
    load = Counter(bundle for passed in chain for bundle in passed)
    assert found.streams / found.links <= max(count / width(bundle, IPU2) for bundle, count in load.items())
