"""The player: its frames sum to the liveness curve and to the bytes of the steps, here and as the page puts them
together."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.profiler.builder import TILES, Builder, spread
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.kit.javascript import evaluate
from tests.widgets.views.payloads import columns
from workbench.base.causes import CAUSE_WORDS, CAUSES
from workbench.errors import InputError
from workbench.profiler.report import face
from workbench.widgets.kit.frames import BLOCK, block_of, frames
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import playback


@cache
def compiled() -> Any:
    """Two stages on two IPUs, with a body that layers share, collectives and the host."""
    model = wb.ready("bert-base", layers=4, hidden=64, heads=2, sequence_length=16)
    return wb.profile(
        model,
        batch_size=2,
        mode="training",
        stages=["encoder_1"],
        gradient_accumulation_steps=4,
        target=wb.target("ipu2", tiles_per_ipu=32),
    )


PROFILES = {"by hand": handmade_profile, "by hand, two IPUs": handmade_pipeline, "two stages": compiled}
EVERY = pytest.mark.parametrize("made", PROFILES.values(), ids=PROFILES)


@EVERY
def test_frames_sum_to_the_profile_s_own_tables(made: Any) -> None:
    profile = made()
    steps = profile.tables["steps"]
    row_of = {step: row for row, step in enumerate(steps["id"].tolist())}
    sent, received = np.zeros(len(row_of), np.int64), np.zeros(len(row_of), np.int64)
    for ipu in range(profile.ipus):
        report, curve = profile.playback.of(ipu=ipu), profile.liveness_view.of(ipu=ipu)
        table = report.to_pandas()
        for place in range(len(report.steps)):
            found = report.frame(place)
            assert (
                found.live_bytes.sum() == curve.live_bytes[place] + curve.always_live_bytes == table.live_bytes[place]
            )
            assert found.live_bytes.max() == curve.worst_tile_bytes[place] == table.fullest_tile_bytes[place]
            assert (found.sent_bytes.sum(), found.received_bytes.sum()) == tuple(
                table.loc[place, ["sent_bytes", "received_bytes"]]
            )
            assert (found.compute_cycles > 0).sum() == table.computing_tiles[place]
            assert found.compute_cycles.max() <= found.cycles
            row = row_of[found.step]
            if np.flatnonzero(report.steps == found.step)[0] == place:  # its first place on this IPU
                sent[row] += found.sent_bytes.sum()
                received[row] += found.received_bytes.sum()
    assert sent.tolist() == steps["bytes_sent"].tolist()
    assert received.tolist() == steps["bytes_received"].tolist()


@EVERY
def test_at_any_places_there_lives_what_lives_at_each(made: Any) -> None:
    report = made().playback
    places = sorted({0, 1, len(report.steps) // 2, len(report.steps) - 1})
    alone = [report.live_at([place])[0] for place in places]
    assert np.array_equal(report.live_at(places), alone)
    for place, values in zip(places, alone, strict=True):
        for tile in (0, len(values) - 1):
            curve = report.profile.liveness_view.of(ipu=report.ipu, tile=tile)
            assert values[tile] == curve.live_bytes[place] + curve.always_live_bytes


@EVERY
def test_the_page_puts_together_the_same_frames(made: Any, node: str) -> None:
    report = made().playback
    blocks = []
    for number in range(-(-len(report.steps) // BLOCK)):
        layout, buffer = pack(frames(report, block_of(report, number)))
        sent = columns({"layout": layout}, buffer)
        blocks.append({name: values.tolist() for name, values in sent.items()})
    tiles = report.profile.arrays["always_live"].shape[1]
    source = f"""
        import {{Frames}} from "WIDGETS/kit/frames.js";
        const frames = new Frames({tiles}, 1000);
        for (const block of {blocks!r}) frames.take(block);
        const told = [];
        for (let place = 0; place < {len(report.steps)}; place++) {{
          const found = frames.at(place);
          told.push(["live", "compute", "sent", "received"].map((name) => [...found[name]]));
        }}
        console.log(JSON.stringify({{told, beyond: frames.at({len(report.steps)})}}));
    """
    answer = evaluate(node, source)
    assert answer["beyond"] is None
    for place, (live, compute, sent_bytes, received) in enumerate(answer["told"]):
        found = report.frame(place)
        assert live == found.live_bytes.tolist()
        assert compute == found.compute_cycles.tolist()
        assert sent_bytes == found.sent_bytes.tolist()
        assert received == found.received_bytes.tolist()


def test_a_view_sends_the_block_that_is_asked_for_and_follows_the_ipu() -> None:
    profile, selection = compiled(), Selection()
    view = face("playback").widget(profile.playback.of(ipu=0), selection=selection)
    assert view.data["ipu"] == 0
    told: list[Any] = []
    view.send = lambda content, buffers=None: told.append((content, buffers))
    last = (len(profile.playback.of(ipu=0).steps) - 1) // BLOCK
    for other in (
        {"block": last + 1, "ipu": 0},
        {"block": 0, "ipu": 1},
        {"block": "0", "ipu": 0},
        "block",
        {"block": -1},
    ):
        view._handle_custom_msg(other, [])
    assert told == []
    view._handle_custom_msg({"block": last, "ipu": 0}, [])
    ((content, buffers),) = told
    sent = columns(content, buffers[0])
    assert content["block"] == last
    assert sent["place"].tolist() == list(block_of(profile.playback.of(ipu=0), last))
    selection.ipu = 1
    assert view.data["ipu"] == 1


def test_the_player_opens_where_the_fullest_tile_is_fullest() -> None:
    build = Builder("one tile at a step, many at another")
    build.variable("alone", "activation", spread(8_000, [5]), lives=[(0, 0)])
    build.variable("everywhere", "activation", spread(TILES * 4_000), lives=[(1, 1)])
    for name in ("first", "second"):
        build.step("OnTileExecute", name, 10)
    build.timeline = [{"ipu": 0, "position": step, "step": step} for step in (0, 1)]
    build.meta["total_cycles"] = 20
    profile = build.profile({"entry": ["sequence", "", [["step", 0], ["step", 1]]], "functions": {}})
    # 8,000 bytes on tile 5 at the first step; at the second 64,000 in all, but no more than 4,000 on a tile.
    assert profile.liveness_view.peak_position == 1
    assert (profile.peak.tile, profile.peak.step) == (5, 0)
    found = profile.playback.data
    assert (found["step"], found["fullest_tile"], found["fullest_tile_bytes"]) == (0, 5, 8_000)


def test_other_places_are_refused() -> None:
    report = handmade_profile().playback
    for position in (-1, len(report.steps), 1.5, True, "0"):
        with pytest.raises(InputError, match="position"):
            report.of(position=position)
    with pytest.raises(InputError, match="ipu"):
        report.of(ipu=1)


@EVERY
def test_still_faces(made: Any) -> None:
    report = made().playback
    assert f"Playback of IPU {report.ipu}" in report.svg()
    assert report.sentence in report.figure().layout.title.text
    state = playback.stored(report)
    sent = columns(state["data"], state["buffer"])
    assert report.position in sent["place"]
    assert len(sent["place"]) <= playback.STORED
    assert "fullest_tile_bytes" in playback.html(report)


def test_the_legend_has_the_order_of_the_other_views() -> None:
    """The compiled pipeline computes before it copies, synchronises and asks the host, in another order than named."""
    report = compiled().playback
    data, buffer = playback.payload(report, [])
    there = set(report.to_pandas()["cause"])
    assert data["cause_names"] == [cause for cause in CAUSES if cause in there]
    assert [each["label"] for each in data["causes"]] == [CAUSE_WORDS[cause] for cause in data["cause_names"]]
    said = [data["cause_names"][at] for at in columns(data, buffer)["cause"].tolist()]
    assert said == report.to_pandas()["cause"].tolist()
