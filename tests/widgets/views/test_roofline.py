"""The roofline's payload: every point and ceiling of the report."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.views.payloads import columns
from workbench.widgets.views import roofline


def test_points_are_those_of_the_report() -> None:
    report = handmade_profile().roofline
    data, buffer = roofline.payload(report)
    sent = columns(data, buffer)
    assert len(report.points)
    assert [data["strings"][place] for place in sent["name"]] == report.points["name"].tolist()
    for name in ("flops", "rate", "ceiling", "exchanged_bytes"):
        assert sent[name].tolist() == report.points[name].tolist()
    endless = np.isinf(report.points["intensity"])
    assert ((sent["intensity"] == data["endless"]) == endless).all()
    assert data["ceilings"] == report.ceilings


def test_without_points_there_are_still_ceilings() -> None:
    report = handmade_pipeline().roofline
    data, _ = roofline.payload(report)
    assert data["ceilings"]["compute"] > 0
    assert "No operator" in report.svg()


def test_every_type_that_is_used_has_its_ceiling() -> None:
    target = wb.target("ipu2", tiles_per_ipu=4)
    half, single = 2 * 64 * 4 * target.clock_hz, 2 * 16 * 4 * target.clock_hz  # multiply-accumulates of 4 tiles
    kind = {name: jax.ShapeDtypeStruct((64, 64), name) for name in ("float16", "float32")}

    def both(a: Any, b: Any) -> Any:
        return a @ a, b @ b

    only = wb.profile(lambda a: a @ a, kind["float32"], target=target).roofline
    assert only.peaks == {"float32": single}
    assert (only.points["ceiling"] <= single).all()
    assert only.sentence.endswith(" of the float32 peak")
    assert wb.profile(lambda a: a @ a, kind["float16"], target=target).roofline.peaks == {"float16": half}
    report = wb.profile(both, kind["float16"], kind["float32"], target=target).roofline
    assert report.peaks == {"float16": half, "float32": single}
    assert sorted(report.points["type"]) == ["float16", "float32"]
    for name in report.peaks:
        assert f"compute in {name}" in report.svg()
    assert [line.name for line in roofline.figure(report).data if line.mode == "lines"] == [
        f"ceiling of exchange and of compute in {name}" for name in ("float16", "float32")
    ]
    data, buffer = roofline.payload(report)
    sent = [data["strings"][place] for place in columns(data, buffer)["type"]]
    assert (data["peaks"], sent) == (report.peaks, report.points["type"].tolist())


def test_operators_that_have_no_place_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    report = wb.profile("mlp", batch_size=4, mode="training", target=wb.target("ipu2", tiles_per_ipu=16)).roofline
    placed = int(np.isfinite(report.points["intensity"]).sum())
    endless = len(report.points) - placed
    beside = f"{endless} operators without exchange have no place here"
    assert endless > 1
    assert placed > 2
    assert beside in report.svg()
    assert report.figure().layout.title.text == f"{report.sentence}; {beside}"
    monkeypatch.setattr(roofline, "DRAWN", 2)
    assert f"2 of {placed} operators are shown, those with most FLOP; {beside}" in report.svg()
