"""What decided a found cut, of four layers whose costs are written down by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.profile import with_meta
from workbench.splits.costs import StageCosts
from workbench.splits.decided import Balanced, decided
from workbench.splits.layout import Layout
from workbench.splits.split import Attempt

NAMES = ("a", "b", "c", "d")
LAYOUT = Layout(layers=4, ipus=2, tail=4)
EVEN, UNEVEN = (2,), (1,)


def costs() -> StageCosts:
    """Each layer takes 10 cycles; they need 70, 30, 10 and 10 bytes."""
    none = np.zeros(4)
    numbers = {"backward": none, "update": none, "copy": none, "stash": none, "work": none, "inputs": none}
    return StageCosts(
        names=NAMES, forward=np.full(4, 10.0), fixed=np.array([70.0, 30.0, 10.0, 10.0]), depth=(1, 1), **numbers
    )


def attempt(cuts: tuple[int, ...], capacity: int, used: int, cycles: int, **arguments: Any) -> Attempt:
    """Memory is typically 5 % off in these profiles."""
    made = handmade_profile()
    verdict = {**made.meta["verdict"], "fits": used <= capacity, "max_tile_bytes": used}
    target = {**made.meta["target"], "bytes_per_tile": capacity}
    profile = replace(made, meta={**made.meta, "verdict": verdict, "target": target, "total_cycles": cycles})
    return Attempt(cuts=cuts, arguments=arguments, executable=SimpleNamespace(profile=profile))


def test_the_most_even_cut_by_hand() -> None:
    found = Balanced.of(LAYOUT, costs(), UNEVEN)
    assert found == Balanced(cuts=EVEN, slowest_cycles=20.0, found_cycles=30.0, max_tile_bytes=100.0)
    assert not found.is_found
    assert Balanced.of(LAYOUT, costs(), EVEN).is_found


@pytest.mark.parametrize(
    ("capacity", "over"), [(90, "a tile 10 B over"), (96, "a tile 4 B over, within the typical error of 5.0 %")]
)
def test_memory_decided_and_by_how_much_the_even_cut_is_over(capacity: int, over: str) -> None:
    best = attempt(UNEVEN, capacity, used=70, cycles=300)
    assert decided(best, [best], Balanced.of(LAYOUT, costs(), UNEVEN), NAMES) == (
        "memory decided the cut, not time: the most even in time, cut after b, is expected to be 33.3 % quicker on its "
        f"slowest IPU, with {over}"
    )


def test_the_quicker_one_that_was_compiled_is_named() -> None:
    best, quicker = attempt(UNEVEN, 90, used=70, cycles=300), attempt((3,), 90, used=110, cycles=240)
    other = attempt(EVEN, 90, used=91, cycles=200, recomputation=True)
    text = decided(best, [other, quicker, best], Balanced.of(LAYOUT, costs(), UNEVEN), NAMES)
    assert text.endswith(
        "; of the quicker ones compiled, that cut after c takes 20.0 % fewer cycles a call, with a tile 20 B over"
    )


def test_time_decided_where_none_is_quicker() -> None:
    best = attempt(EVEN, 200, used=100, cycles=200)
    assert decided(best, [best], Balanced.of(LAYOUT, costs(), EVEN), NAMES).startswith("time decided the cut: ")


def test_neither_where_the_even_cut_should_fit_and_was_not_compiled() -> None:
    best = attempt(UNEVEN, 200, used=70, cycles=300)
    assert decided(best, [best], Balanced.of(LAYOUT, costs(), UNEVEN), NAMES) == ""


def test_the_pipeline_says_what_decided_its_stages() -> None:
    made = handmade_pipeline()
    told = with_meta(made, pipeline={**made.meta["pipeline"], "decided": "memory decided the cut; one is quicker"})
    assert told.pipeline.sentence == f"{made.pipeline.sentence}; memory decided the cut"
    first, second, *_ = told.pipeline.to_text().splitlines()
    assert (first, second) == (told.pipeline.sentence, "One is quicker")
    assert made.pipeline.decided == ""
