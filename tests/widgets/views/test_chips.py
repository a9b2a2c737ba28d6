"""The strip of IPUs: its numbers are the profile's, its clicks choose, and 64 IPUs stay within their budget."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.widgets import linked
from workbench.widgets.views import chips, memory, tile_map

MAX_SESSION_BYTES = 10 << 20


def test_the_strip_says_what_the_tables_say() -> None:
    profile = handmade_pipeline()
    data, buffer = chips.payload(profile.chips)
    sent = columns(data, buffer)
    spent = profile.cycle_breakdown
    for ipu in range(profile.ipus):
        needed = profile.arrays["always_live"][ipu] + profile.arrays["live_peak"][ipu]
        placed = profile.arrays["total_with_gaps"][ipu]
        assert (sent["tile"][ipu], sent["bytes"][ipu]) == (placed.argmax(), placed.max())
        idle = spent[(spent["ipu"] == ipu) & spent["cause"].str.startswith("idle_")]["cycles"].sum()
        assert sent["waiting"][ipu] == idle
        row = profile.chips.rows.iloc[ipu]
        assert row["busy_cycles"] + row["waiting_cycles"] == profile.total_cycles
        assert row["bytes"] == needed.sum()
    assert data["stages"] == ["0", "1"]
    assert profile.chips.sentence.startswith("2 IPUs, modelled: IPU 0 is fullest, ")


def test_one_ipu_has_no_strip() -> None:
    assert "chips" not in linked.shown(handmade_profile())
    assert linked.shown(handmade_pipeline())[0] == "chips"


def test_its_faces() -> None:
    report = handmade_pipeline().chips
    assert "<img" in chips.html(report)
    assert report.svg().count("<rect") >= 2 * 3
    assert [len(each.x) for each in report.figure().data] == [2, 2]


@pytest.fixture(scope="module")
def many() -> Any:
    """64 IPUs, of whose tiles' bytes there are twelve categories."""
    profile = large_profile(ipus=64, steps=240, micro_batches=64)
    kinds = np.array(["parameter", "activation", "temporary", "gradient", "stash", "optimizer", "state", "input"])
    table = dict(profile.tables["variables"])
    table["kind"] = kinds[np.arange(len(table["id"])) % len(kinds)].astype(object)
    for place, name in enumerate(("vertex_code", "control_code", "stack", "internal_exchange_code")):
        profile.arrays[f"category.{name}"][:] = 100 + place
    return type(profile)(meta=profile.meta, tables={**profile.tables, "variables": table}, arrays=profile.arrays)


def state_bytes(widget: Any) -> int:
    state = widget.get_state()
    return sum(
        len(value) if isinstance(value, bytes | memoryview) else len(json.dumps(value, default=str))
        for value in (state["data"], state["buffer"])
    )


def test_of_many_ipus_a_view_over_tiles_is_sent_the_chosen_one(many: Any) -> None:
    views = linked.views(many, "memory", "tile_map")
    shown, plan = views.view("memory"), views.view("tile_map")
    assert len(shown.data["categories"]) >= 10
    for ipu in (many.peak.ipu, 41):
        views.selection.ipu = ipu
        for view in (shown, plan):
            assert (view.data["ipu"], view.data["held"]) == (ipu, [ipu])
            sent = columns(view.data, view.buffer)["bytes"].reshape(-1, 1472)
            by_category = many.memory.of(ipu=ipu).by_category
            assert sent.sum() == sum(part.sum() for part in by_category.values())
    busy = columns(plan.data, plan.buffer)["cycles"]
    assert busy.tolist() == tile_map.busy_cycles(many, [41])[0].tolist()
    assert memory.stored(many.memory)["data"]["held"] == [many.memory.ipu]


def test_a_session_with_every_view_of_64_ipus_is_within_its_budget(many: Any) -> None:
    shown = linked.profile_view(many)
    first = sum(state_bytes(view) for view in (shown.view("chips"), shown.view("summary")))
    assert first < 100_000
    sizes = {name: state_bytes(shown.view(name)) for name in shown.names}
    assert sum(sizes.values()) <= MAX_SESSION_BYTES, sizes
    assert sizes["memory"] + sizes["tile_map"] < 400_000
