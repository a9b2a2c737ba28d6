"""The payload of the program tree: what is sent is the report's, in parts or whole; what is asked for is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.large import large_profile
from tests.widgets.views.payloads import columns
from workbench.profiler.profile import Profile
from workbench.widgets.views import program_tree
from workbench.widgets.views.program_tree import Rows

each_profile = pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])


@each_profile
def test_totals_are_the_profile_s(make: Callable[[], Profile]) -> None:
    profile = make()
    data, buffer = program_tree.payload(profile.program_tree, Rows(profile.program_tree))
    sent = columns(data, buffer)
    assert sent["cycles"][0] == profile.total_cycles == data["total_cycles"]
    mine = sent["step"] >= 0
    total = sent["cycles"].astype(np.int64) * sent["runs"].astype(np.int64)
    found = {step: int(total[sent["step"] == step].sum()) for step in sent["step"][mine]}
    assert found == profile.steps.groupby("id")["total_cycles"].sum().to_dict()
    root = {data["kind_names"][kind]: int(cycles) for kind, cycles in _causes_of(sent, 0)}
    whole = profile.cycle_breakdown.groupby("cause")["cycles"].sum()
    assert root == whole[whole > 0].to_dict()
    for name, (runs, cycles) in data["calls"].items():
        row = profile.program_tree.calls.set_index("function").loc[name]
        assert (runs, cycles) == (row["runs"], row["cycles"])


def _causes_of(sent: dict[str, Any], row: int) -> list[tuple[int, int]]:
    mine = sent["cause_row"] == row
    return list(zip(sent["cause"][mine], sent["cause_cycles"][mine], strict=True))


def test_what_is_opened_later_is_what_was_sent_at_once() -> None:
    report = large_profile(ipus=2, tiles=4, steps=600, micro_batches=5).program_tree
    whole, lazy = Rows(report), Rows(report)
    whole.first(1_000_000)
    first = lazy.first(40)
    assert len(first) <= 40 < len(whole.all)
    assert -1 in columns_of(lazy, first)["below"]
    assert -1 not in columns_of(whole, range(len(whole.all)))["below"]
    todo = [0]
    while todo:
        todo += [row for row in lazy.open(todo.pop()) if not lazy.all[row].is_leaf]
    told = [sorted((each.name, each.kind, each.runs, each.cycles) for each in rows.all) for rows in (whole, lazy)]
    assert told[0] == told[1]


def columns_of(rows: Rows, chosen: Any) -> dict[str, Any]:
    data, buffer = program_tree.rows_of(rows, chosen)
    return columns(data, buffer)


class Talk:
    """What a view sends."""

    def __init__(self, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(program_tree, "SENT", 4)
        self.view = program_tree.widget(profile.program_tree)
        self.told: list[tuple[dict[str, Any], dict[str, Any]]] = []
        monkeypatch.setattr(self.view, "send", self.keep)

    def keep(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        self.told.append((message, columns(message["tree"], buffers[0])))

    def ask(self, message: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.view.hear(message)
        return self.told[-1]


def test_what_is_asked_for_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = handmade_profile()
    talk = Talk(profile, monkeypatch)
    found, sent = talk.ask({"seek": "DENSE_2 matmul", "asked": 3})
    rows = talk.view.rows
    assert found["asked"] == 3
    assert [rows.all[row].step for row in found["matches"]] == [6]
    assert set(found["matches"]) <= set(sent["row"])
    assert all(parent == -1 or parent in sent["row"] for parent in sent["parent"])
    found, sent = talk.ask({"step": 8, "layer": "dense_2", "asked": 4})
    assert [rows.all[row].name for row in found["matches"]] == ["dense_2/grad"]
    call = next(place for place, each in enumerate(rows.all) if each.kind == "call")
    found, sent = talk.ask({"open": call})
    assert (found["opened"], found["below"]) == (call, 5)
    assert set(sent["parent"]) == {call}


@pytest.mark.parametrize("message", [{"open": -1}, {"open": 10**9}, {"open": "0"}, {"step": -1}, {"seek": 3}, [], None])
def test_junk_is_not_answered(message: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(handmade_profile(), monkeypatch)
    talk.view.hear(message)
    assert talk.told == []


def test_a_step_of_a_body_is_found_for_the_layer_that_it_runs_for() -> None:
    rows = Rows(handmade_pipeline().program_tree)
    found = list(rows.seek([], step=2))
    assert [rows.all[row].step for row in found] == [2]  # the body of four calls is looked at once


def test_the_picture_says_what_is_left_out() -> None:
    report = large_profile(ipus=1, tiles=2, steps=600, micro_batches=5).program_tree
    rows = report.dearest(10, beside=2)
    assert rows[0][1] is report.branches.root
    assert 10 <= len(rows) <= 12
    for place, (level, branch, left) in enumerate(rows):
        below = report.branches.below(branch)
        shown = sum(1 for deep, each, _ in rows[place + 1 :] if deep == level + 1 and each.start >= branch.start)
        assert left == 0 or left == len(below) - min(2, shown)
    assert " more</text>" in report.svg()
