"""The smallest programs there are: one tile, one step, nothing at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline
from tests.widgets.large import large_profile
from workbench.profiler.profile import Profile
from workbench.profiler.report import face
from workbench.widgets.face import views

VIEWS = [each.name for each in views()]


def idle_ipu() -> Profile:
    """Two IPUs, of which nothing ever runs on the second."""
    profile = handmade_pipeline()
    tables = dict(profile.tables)
    for name in ("timeline", "liveness"):
        keep = tables[name]["ipu"] == 0
        tables[name] = {column: values[keep] for column, values in tables[name].items()}
    here = tables["variables"]["ipu"][tables["intervals"]["variable"]] == 0
    tables["intervals"] = {column: values[here] for column, values in tables["intervals"].items()}
    return replace(profile, tables=tables)


def nothing() -> Profile:
    """A program without a step."""
    profile = large_profile(ipus=1, tiles=4, steps=12, micro_batches=1)
    tables = {name: dict(columns) for name, columns in profile.tables.items()}
    for name in ("steps", "timeline", "liveness", "intervals", "cycle_breakdown"):
        tables[name] = {column: values[:0] for column, values in tables[name].items()}
    arrays = {**profile.arrays, "live_peak": np.zeros_like(profile.arrays["live_peak"])}
    meta = {**profile.meta, "total_cycles": 0, "trace": {"entry": ["sequence", "nothing", []], "functions": {}}}
    return replace(profile, tables=tables, arrays=arrays, meta=meta)


MAKERS = {
    "one tile": lambda: large_profile(ipus=1, tiles=1, steps=12, micro_batches=1),
    "nothing": nothing,
    "idle ipu": idle_ipu,
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_face_is_made(name: str, make: object, tmp_path: Path) -> None:
    profile: Profile = make()  # type: ignore[operator]
    report = getattr(profile, name)
    drawn = face(name)
    assert "<img" in drawn.html(report)
    assert drawn.widget(report).data["sentence" if name != "summary" else "headline"]
    drawn.figure(report)
    assert set(drawn.stored(report)) >= {"data", "buffer"}


def test_an_ipu_where_nothing_runs_has_a_liveness_view() -> None:
    report = idle_ipu().liveness_view.of(ipu=1)
    assert face("liveness_view").widget(report).data["ipu"] == 1
    assert "<img" in face("liveness_view").html(report)
