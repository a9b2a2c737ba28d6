"""The payload of the operations: every row as in the report, and sums that are the profile's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.views.payloads import columns
from workbench.widgets.views import operations


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])
def test_sums_are_the_profile_s(make: Any) -> None:
    profile = make()
    data, buffer = operations.payload(profile.operations)
    sent = columns(data, buffer)
    assert sent["layers_cycles"].sum() == profile.steps["total_cycles"].sum()
    assert sent["layers_variable_bytes"].sum() == profile.variables["bytes"].sum()
    assert sent["layers_code_bytes"].sum() == profile.operators["code_bytes"].sum()
    assert sent["operators_cycles"].sum() == profile.operators["cycles"].sum()


def test_rows_are_those_of_the_report() -> None:
    report = handmade_profile().operations
    data, buffer = operations.payload(report)
    sent = columns(data, buffer)
    for name, frame in (("operators", report.operators), ("layers", report.layers)):
        about = data["tables"][name]
        assert [*about["texts"], *about["numbers"]]
        assert about["rows"] == len(frame) > 0
        for column in about["texts"]:
            assert [data["strings"][place] for place in sent[f"{name}_{column}"]] == frame[column].tolist()
        for column in about["numbers"]:
            assert sent[f"{name}_{column}"].tolist() == frame[column].tolist()


def test_layers_that_are_not_drawn_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dense_1, dense_2, loss and what is in no layer."""
    report = handmade_profile().operations
    assert "The cycles of 4 layers" in report.svg()
    monkeypatch.setattr(operations, "DRAWN", 3)
    told = "3 of 4 layers are shown, those with most cycles"
    assert told in report.svg()
    assert report.figure().layout.title.text.endswith(f"; {told}")
