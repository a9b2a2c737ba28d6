"""The roofline's payload: every point and ceiling of the report."""

from __future__ import annotations

import numpy as np

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
