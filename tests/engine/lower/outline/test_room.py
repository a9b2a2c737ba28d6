"""Room: what is held twice counts as far as it rises over what is needed anyway, now and when a body is met again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

from tests.engine.lower.pipeline.networks import SCHEDULES, Network, both
from tests.engine.random_graphs import Drawing, graphs
from workbench.base.arrays import IntArray
from workbench.engine.compile import compile_graph
from workbench.engine.graph import Node
from workbench.engine.lower.outline.room import Heard, Room
from workbench.engine.options import options
from workbench.engine.target import target

TILES = 3
LOWERING: Any = SimpleNamespace(emit=SimpleNamespace(ipu=0))


class Standing(Room):
    """A room in which the same is live wherever a node stands."""

    def live_bytes(self, node: Any, lowering: Any) -> IntArray:
        """What is live, int64[tiles]."""
        return np.array([10, 20, 30])


def test_what_rises_over_the_need_counts() -> None:
    """Live 10, 20, 30 and own 8: over a need of 12 that rises by 6, 8 (all) and 8; kept 1 with it is at most 9."""
    room = Standing(needed={0: np.full(TILES, 12)})
    own, kept, node = np.full(TILES, 8), np.ones(TILES, np.int64), None
    assert room.fits(node, own, own, kept, 9, LOWERING)  # type: ignore[arg-type]
    assert not room.fits(node, own, own, kept, 8, LOWERING)  # type: ignore[arg-type]
    room.need(0, np.array([0, 21, 31]))  # the second and third rise by 7
    assert room.fits(node, own, own, kept, 8, LOWERING)  # type: ignore[arg-type]
    assert not room.fits(node, own, own, kept, 7, LOWERING)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_the_formula_and_say_for_which_needs_they_hold(seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, other, told = (draw.integers(0, 60, TILES) for _ in range(3))
    own = draw.integers(0, 20, TILES)
    twice, kept, most = draw.integers(0, own + 1), draw.integers(0, 12, TILES), int(draw.integers(5, 25))
    answers = []
    for needed in (before, other):
        room = Standing(needed={0: needed}, heard=Heard())
        room.need(0, told)
        answers.append(room.fits(None, own, twice, kept, most, LOWERING))  # type: ignore[arg-type]
        now = np.maximum(needed, told)
        rising = np.minimum(twice, np.clip(room.live_bytes(None, LOWERING) + own - now, 0, own))
        assert answers[-1] == bool((kept + rising <= most).all())
        assert room.heard is not None
        for least, answer in room.heard.asked:
            assert answer == answers[-1] == bool((needed >= least).all())
            assert np.array_equal(room.heard.noted, told)
    asked = room.heard.asked if room.heard is not None else []
    assert all(bool((before >= least).all()) == answers[0] for least, _ in asked)  # heard with the other need
    assert asked or int(kept.max()) > most


@contextmanager
def told_alike() -> Iterator[list[Node]]:
    """Inside, what is kept up of what is live is held against what is counted anew; the nodes that were asked for."""
    asked: list[Node] = []
    answer = Room.live_bytes

    def compared(room: Room, node: Node, lowering: Any) -> IntArray | None:
        found = answer(room, node, lowering)
        if found is not None:
            asked.append(node)
            name, place = room.places[node]
            values = [value for value in room.spans[name].values if room.spans[name].is_live(value, place)]
            held = {number for value in values if lowering.has(value) for number in lowering.get(value).variables}
            variables = [lowering.emit.variables[number] for number in held]
            wanted = sum((each.bytes_per_tile for each in variables if not each.always_live), np.zeros_like(found))
            assert np.array_equal(found, wanted)
        return found

    with mock.patch.object(Room, "live_bytes", compared):
        yield asked


@given(graphs())
def test_what_is_live_is_kept_up_in_random_graphs(drawing: Drawing) -> None:
    with told_alike():
        compile_graph(drawing.graph, target("ipu2", tiles_per_ipu=32), options())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_live_is_kept_up_in_stages(schedule: str) -> None:
    network = Network(
        kind="transformer",
        blocks=4,
        cuts=(1,),
        width=32,
        batch=4,
        activation="relu",
        dropout=False,
        normed=True,
        skip=True,
        precision="float32",
    )
    with told_alike() as asked:
        both(network, schedule)
    assert len(asked) > network.blocks
