"""Liveness of all IPUs: each lane's stretches hold the most bytes of its IPU's program, where they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import liveness_view

MAKERS = {
    "one": handmade_profile,
    "two": handmade_pipeline,
    "many stretches": lambda: large_profile(ipus=3, tiles=16, steps=1_000),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_stretches_hold_the_most_of_what_they_cover(make: Any) -> None:
    profile = make()
    data, buffer = liveness_view.lanes(profile.liveness_view)
    sent = columns(data, buffer)
    for ipu in range(profile.ipus):
        mine = profile.liveness_view.of(ipu=ipu)
        rows = slice(sent["start"][ipu], sent["start"][ipu + 1])
        firsts = sent["first"][rows].tolist()
        assert firsts[0] == 0
        assert len(firsts) <= liveness_view.BINS
        whole = mine.live_bytes + mine.always_live_bytes
        for measure, values in (("live", whole), ("full", mine.worst_tile_bytes)):
            expected = np.maximum.reduceat(values, firsts)
            assert sent[measure][rows].tolist() == expected.tolist()
            at = sent[f"{measure}_at"][rows]
            assert values[at].tolist() == expected.tolist()
            assert np.searchsorted(firsts, at, side="right").tolist() == list(range(1, len(firsts) + 1))
            assert sent[f"{measure}_step"][rows].tolist() == mine.steps[at].tolist()
            names = [data["names"][number] for number in sent[f"{measure}_name"][rows]]
            assert names == [mine.step_names[place] for place in at]
        assert sent["full_tile"][rows].tolist() == mine.worst_tile[sent["full_at"][rows]].tolist()
        row = mine.over_ipus.loc[ipu]
        assert (row["peak_bytes"], row["fullest_tile_bytes"]) == (whole.max(), mine.worst_tile_bytes.max())
        assert whole[row["peak_position"]] == whole.max()
        assert row["always_live_bytes"] == profile.arrays["always_live"][ipu].sum()
    assert data["lanes"] == profile.liveness_view.over_ipus.to_dict("list")
    assert f"of IPU {profile.peak.ipu}" in data["sentence"]


def test_the_scope_is_chosen_and_left_again() -> None:
    profile, selection = handmade_pipeline(), Selection()
    view = liveness_view.widget(profile.liveness_view, selection)
    view.mode = "ipus"
    shown = view.data
    assert shown["ipus"] == 2
    selection.ipu = 1
    assert view.data is shown  # of all, whichever is chosen
    view.mode = "ipu"
    assert (view.data["ipu"], view.data["tile"]) == (1, None)
    assert "lanes" not in view.data


def test_64_ipus_are_sent_in_less_than_a_megabyte() -> None:
    profile = large_profile(ipus=64, steps=240, micro_batches=64)
    data, buffer = liveness_view.lanes(profile.liveness_view)
    assert len(buffer) + len(json.dumps(data)) < 1_000_000
