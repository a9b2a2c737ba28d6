"""The payload of the schedules: lanes whose bins and rest sum to each schedule's time, and numbers of the report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.widgets.views.made_schedules import PROBLEM, compared
from tests.widgets.views.payloads import columns
from workbench.profiler.profile import with_meta
from workbench.profiler.report import face
from workbench.widgets.views.schedules import SchedulesView, payload


def test_lanes_hold_the_cycles_of_their_profiles() -> None:
    report = compared()
    data, buffer = payload(report)
    sent = columns(data, buffer)
    assert [each["title"] for each in data["schedules"]] == ["Grouped", "Interleaved, recomputed"]
    for place, (told, profile) in enumerate(zip(data["schedules"], report.profiles, strict=True)):
        assert told["total_cycles"] == profile.total_cycles
        assert sum(told["spent"].values()) == profile.ipus * profile.total_cycles
        lanes = sent[f"bins{place}"].reshape(profile.ipus, data["bins"], -1)
        busy = lanes.sum(axis=(1, 2)) / 255 * profile.total_cycles / data["bins"]
        spent = profile.cycle_breakdown
        expected = spent[~spent["cause"].str.startswith("idle")].groupby("ipu")["cycles"].sum()
        assert np.allclose(busy, expected, rtol=0.01)


def test_trials_of_one_program_have_the_same_lanes() -> None:
    report = compared()
    first, second = report.profiles
    again = with_meta(first, assumptions=["nothing is computed again"])
    trials = (*report.trials, replace(report.trials[0], recomputation=True, executable=again))
    data, buffer = payload(replace(report, profiles=(first, second, again), trials=trials))
    sent = columns(data, buffer)
    assert (sent["bins0"] == sent["bins2"]).all()
    assert (sent["bins0"] != sent["bins1"]).any()


def test_what_did_not_compile_says_why_and_the_best_is_marked() -> None:
    report = compared()
    data, _ = payload(report)
    assert data["refused"] == [{"title": "Sequential", "problem": PROBLEM}]
    assert [each["best"] for each in data["schedules"]] == [profile is report.best for profile in report.profiles]
    assert sum(each["best"] for each in data["schedules"]) == 1


def test_the_live_view_is_a_canvas_with_the_stored_picture_beside_it() -> None:
    report = compared()
    view = face("schedules").widget(report)
    assert isinstance(view, SchedulesView)
    bundle = face("schedules").mimebundle(report)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "<img" in bundle["text/html"]
