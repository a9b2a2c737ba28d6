"""What a tile's bar is made of in each split: sums that are the tables', and what is asked of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.views.payloads import columns
from workbench.widgets.views.memory import ASKED_FOR, SPLITS, VARIABLES, MemoryView, parts, payload

MAKERS = [handmade_profile, handmade_pipeline]


@pytest.mark.parametrize("make", MAKERS)
def test_splits_sum_to_the_columns_of_the_tiles(make: Any) -> None:
    profile = make()
    for ipu in range(profile.ipus):
        report, tiles = profile.memory.of(ipu=ipu), profile.tiles.query("ipu == @ipu")
        sums = {split: sum(values for _, values in parts(report, split)) for split in SPLITS if split != "variables"}
        live = tiles["always_live_bytes"] + tiles["not_always_live_bytes"]
        assert sums["category"].tolist() == sums["liveness"].tolist() == live.tolist()
        assert sums["allocated"].tolist() == tiles["total_with_gaps_bytes"].tolist()
        assert sums["region"].tolist() == tiles["total_bytes"].tolist()


def test_gaps_and_regions_have_parts_of_their_own() -> None:
    report = handmade_profile(fits=False).memory
    allocated = {painted["label"]: values for painted, values in parts(report, "allocated")}
    with_gaps = handmade_profile(fits=False).tiles["total_with_gaps_bytes"].to_numpy()
    assert (sum(values for label, values in allocated.items() if label != "gaps") <= with_gaps).all()
    regions = [painted["label"] for painted, _ in parts(report, "region")]
    assert regions == [each for each in ("not interleaved", "interleaved", "beyond the tile") if each in regions]
    assert "beyond the tile" in regions  # it does not fit


@pytest.mark.parametrize("make", MAKERS)
def test_liveness_and_places_travel_with_the_first_picture(make: Any) -> None:
    profile = make()
    data, buffer = payload(profile.memory)
    sent = columns(data, buffer)
    lives = sent["liveness"].reshape(2, profile.ipus, -1)
    assert np.array_equal(lives[0], profile.arrays["always_live"])
    assert np.array_equal(lives[1], profile.arrays["live_peak"])
    assert sent["row"].tolist() == profile.tile_map.places[1].tolist()


def asked(profile: Any, message: Any) -> list[tuple[Any, Any]]:
    view, sent = MemoryView(profile.memory), list[tuple[Any, Any]]()
    view.send = lambda content, buffers=None: sent.append((content, buffers))  # type: ignore[method-assign]
    view._handle_custom_msg(message, [])
    return sent


def test_variables_are_sent_for_the_ipu_that_is_asked_for() -> None:
    profile = handmade_pipeline()
    table = profile.variables
    chosen = [int(table[table["ipu"] == ipu]["id"].iloc[0]) for ipu in (0, 1)]
    ((told, (buffer,)),) = asked(profile, {"split": "variables", "ipu": 1, "variables": chosen, "asked": 3})
    assert told["asked"] == 3
    sent = columns(told["split"], buffer)["bytes"].reshape(2, -1)
    assert [painted["label"] for painted in told["split"]["paints"]] == table.loc[chosen, "name"].tolist()
    assert sent[0].sum() == 0  # of IPU 0
    assert sent[1].sum() == table.loc[chosen[1], "bytes"]


@pytest.mark.parametrize("split", ASKED_FOR)
def test_what_is_asked_for_is_what_the_report_says(split: str) -> None:
    profile = handmade_profile()
    ((told, (buffer,)),) = asked(profile, {"split": split, "ipu": 0, "variables": [0, 2], "asked": 1})
    found = parts(profile.memory, split, [0, 2])
    assert told["split"]["paints"] == [painted for painted, _ in found]
    expected = np.concatenate([values for _, values in found])
    assert columns(told["split"], buffer)["bytes"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "message",
    [
        {"split": "heat", "ipu": 0},
        {"split": ["region"], "ipu": 0},
        {"split": "region", "ipu": 7},
        {"split": "variables", "ipu": 0, "variables": [10**6]},
        {"split": "variables", "ipu": 0, "variables": ["a"]},
        {"split": "region"},
        3,
    ],
)
def test_nonsense_is_not_answered(message: Any) -> None:
    assert asked(handmade_profile(), message) == []


def test_so_many_variables_are_shown_at_most() -> None:
    ((told, _),) = asked(handmade_profile(), {"split": "variables", "ipu": 0, "variables": [0] * 99})
    assert len(told["split"]["paints"]) == VARIABLES


def test_a_sentence_travels_for_each_ipu_that_can_be_drawn() -> None:
    profile = handmade_pipeline()
    data, _ = payload(profile.memory)
    assert data["held"] == [0, 1]
    assert data["sentences"] == [profile.memory.of(ipu=ipu).sentence for ipu in (0, 1)]
    assert data["sentences"][1].startswith("Modelled memory of IPU 1 ")


def test_categories_as_allocated_are_named_so() -> None:
    data, _ = payload(handmade_profile().memory.of(measure="allocated"))
    assert data["splits"]["category"] == "category as allocated"
    assert payload(handmade_profile().memory)[0]["splits"] == SPLITS
