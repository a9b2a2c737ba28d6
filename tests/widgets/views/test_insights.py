"""What the insights send: every tip with what it is about, and tiles that are all in the histogram."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.widgets.kit.selection import FIELDS
from workbench.widgets.views import insights


@pytest.mark.parametrize("make", [handmade_profile, lambda: handmade_profile(fits=False), handmade_pipeline])
def test_tips_are_about_what_a_selection_can_hold(make: Any) -> None:
    profile = make()
    data = insights.content(profile.insights)
    assert [tip["text"] for tip in data["tips"]] == profile.insights.tips
    steps = set(profile.steps["id"])
    for tip in data["tips"]:
        assert set(tip["about"]) <= set(FIELDS)
        assert tip["about"].get("step", min(steps)) in steps
        assert 0 <= tip["about"].get("ipu", 0) < profile.ipus
    assert sum(tiles for *_, tiles in data["histogram"]) == profile.arrays["always_live"].size


def test_a_tip_on_memory_is_about_the_peak() -> None:
    profile = handmade_profile(fits=False)
    told = [about for _, about in profile.insights.told if "tile" in about]
    assert told
    peak = profile.peak
    for about in told:
        assert (about["ipu"], about["tile"], about["step"]) == (peak.ipu, peak.tile, peak.step)
        assert profile.liveness_view.of(ipu=peak.ipu).steps[about["position"]] == peak.step
