"""The comparison's payload and picture: both sides as the profiles have them, and names that are text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.evil import evil_profile
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.base.categories import CATEGORY_WORDS
from workbench.base.causes import CAUSE_WORDS
from workbench.widgets.views import comparison

PAIRS = [(handmade_profile, handmade_pipeline), (handmade_pipeline, handmade_profile)]


@pytest.mark.parametrize(("first", "other"), PAIRS)
def test_both_sides_are_sent_as_the_profiles_have_them(first: Any, other: Any) -> None:
    report = wb.compare(first(), other())
    for ipu in range(max(profile.ipus for profile in report.profiles)):
        data, buffer = comparison.payload(report, 1, ipu)
        sent = columns(data, buffer)
        for side, profile in zip("ab", report.profiles, strict=True):
            if ipu >= profile.ipus:
                assert not len(sent[f"{side}_tiles"])
                assert not len(sent[f"{side}_worst"])
                continue
            arrays = profile.arrays
            assert sent[f"{side}_tiles"].tolist() == (arrays["always_live"] + arrays["live_peak"])[ipu].tolist()
            there = profile.liveness_view.of(ipu=ipu)
            assert sent[f"{side}_worst"].tolist() == there.worst_tile_bytes.tolist()
            assert sent[f"{side}_step"].tolist() == there.steps.tolist()
    assert {row["quantity"]: row["b"] - row["a"] for row in data["heads"]} == {
        row.quantity: row.change for row in report.headlines.itertuples()
    }


def test_rows_of_tables_are_those_of_the_report() -> None:
    report = wb.compare(handmade_profile(), handmade_pipeline())
    data, buffer = comparison.payload(report)
    sent = columns(data, buffer)
    for name, about in data["tables"].items():
        frame = report.table(name)
        assert about["rows"] + about["left"] == len(frame)
        for amount in about["amounts"]:
            moved = sent[f"{name}_{amount}_b"] - sent[f"{name}_{amount}_a"]
            assert moved.tolist() == frame[f"{amount} change"].tolist()


@pytest.mark.parametrize(("first", "other"), PAIRS)
def test_traces_of_both_are_on_one_axis(first: Any, other: Any) -> None:
    report = wb.compare(first(), other())
    data, buffer = comparison.payload(report)
    sent, lanes = columns(data, buffer), data["lanes"]
    causes = len(lanes["causes"])
    for side, profile in zip("ab", report.profiles, strict=True):
        mine = [ipu for ipu in lanes["ipus"] if ipu < profile.ipus]
        assert len(lanes["spent"][side]) == len(mine)
        spent = profile.cycle_breakdown
        for ipu, found in zip(mine, lanes["spent"][side], strict=True):
            of_ipu = spent[spent["ipu"] == ipu].groupby("cause")["cycles"].sum()
            assert found == of_ipu.to_dict()
            assert sum(found.values()) == profile.total_cycles
        # Every bin is as long on both sides; what is drawn sums to the cycles in which the IPU is busy.
        bins = sent[f"{side}_lanes"].reshape(len(mine), -1, causes)
        assert bins.shape[1] == -(-profile.total_cycles // lanes["each"])
        for ipu, parts in zip(mine, bins, strict=True):
            busy = spent[(spent["ipu"] == ipu) & ~spent["cause"].str.startswith("idle_")]["cycles"].sum()
            drawn = parts.sum() / 255 * lanes["each"]
            assert drawn == pytest.approx(busy, rel=0.02)
    assert lanes["totals"] == [profile.total_cycles for profile in report.profiles]


def test_of_many_ipus_the_chosen_one_s_trace_is_sent() -> None:
    report = wb.compare(large_profile(ipus=12, steps=60), large_profile(ipus=12, steps=84))
    data, buffer = comparison.payload(report, 1, 7)
    assert data["lanes"]["ipus"] == [7]
    assert len(columns(data, buffer)["a_lanes"]) <= comparison.LANE_BINS * len(data["lanes"]["causes"])


def test_a_swap_negates_the_picture_of_the_tiles() -> None:
    first, other = handmade_profile(), handmade_pipeline()
    there = comparison.change_of_tiles(first, other, 0)
    assert np.any(there)
    assert (there == -comparison.change_of_tiles(other, first, 0)).all()


def test_another_pair_or_ipu_is_asked_for_and_nonsense_is_not_heard() -> None:
    view = wb.compare(handmade_profile(), handmade_profile(fits=False), handmade_pipeline()).widget()
    view.hear({"place": 2, "ipu": 1})
    assert (view.data["place"], view.data["ipu"]) == (2, 1)
    for asked in ({"place": 3, "ipu": 0}, {"place": "1", "ipu": 0}, {"place": True, "ipu": 0}, None, {}):
        view.hear(asked)
        assert (view.data["place"], view.data["ipu"]) == (2, 1)
    view.hear({"place": 1, "ipu": 9})
    assert (view.data["place"], view.data["ipu"]) == (1, 0)


def test_its_faces_and_its_page(tmp_path: Path) -> None:
    report = wb.compare(evil_profile(), handmade_pipeline())
    bundle = report._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert 0 < sum(len(trace.x) for trace in report.figure().data) <= 20_000
    assert "change of every tile" in report.svg()
    text = report.to_html(tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script") == 1
    assert not re.findall(r"<img[^>]*onerror", bundle["text/html"] + report.svg())
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.html"]


def test_calls_of_unlike_samples_are_neither_better_nor_worse() -> None:
    def profile(batch_size: int) -> Any:
        return wb.profile("mlp", batch_size=batch_size, mode="inference", target=wb.target("ipu2", tiles_per_ipu=4))

    few, many = profile(4), profile(8)
    data, _ = comparison.payload(wb.compare(few, many))
    heads = {head["quantity"]: head for head in data["heads"]}
    for quantity in ("total_cycles", "seconds"):
        assert (heads[quantity]["better"], heads[quantity]["samples"]) == (0, {"a": 4, "b": 8})
    assert (heads["samples_per_second"]["better"], heads["max_tile_bytes"]["better"]) == (1, -1)
    assert not any("samples" in head for head in comparison.payload(wb.compare(few, few))[0]["heads"])


def test_parts_of_a_change_are_worded_as_in_the_legends() -> None:
    data, _ = comparison.payload(wb.compare(handmade_profile(), handmade_pipeline()))
    said = {of for _, of, _, _, _ in data["why"]}
    assert said & {"exchange code", "vertex state", "parameters", "temporaries"}
    assert said <= {*CAUSE_WORDS.values(), *CATEGORY_WORDS.values(), "gaps", "remainder"}
