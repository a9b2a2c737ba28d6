"""Rows that miss what is published by more than a fifth: each is listed with its mechanism and what would settle it."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest

from tests.fidelity import report
from tests.fidelity.data import Row, also, rows
from tests.fidelity.judge import judge

FAR: dict[str, dict[str, float | str]] = json.loads(report.FAR.read_text())
REASONS: list[dict[str, Any]] = json.loads(report.FAR.with_name("reasons.json").read_text())


def test_every_row_that_misses_has_one_reason_and_no_reason_is_stale() -> None:
    """A row that comes within the bound loses its reason; one that leaves it is not kept without."""
    named = Counter(row for reason in REASONS for row in reason["rows"])
    assert [row for row, times in named.items() if times > 1] == []
    assert set(named) == {row for missed in FAR.values() for row in missed}


def test_a_reason_says_the_mechanism_and_what_would_settle_it() -> None:
    for reason in REASONS:
        assert set(reason) == {"rows", "mechanism", "settle"}
        for told in (reason["mechanism"], reason["settle"]):
            assert told.strip().endswith((".", ")")), told
        if reason["mechanism"].startswith("Not known"):
            assert not reason["settle"].startswith("Known"), reason


def test_rows_that_miss_are_rows_of_their_group() -> None:
    group_of = {row.name: row.group for row in (*rows(), *also())}
    assert {name: group for group, missed in FAR.items() for name in missed} == {
        name: group_of[name] for missed in FAR.values() for name in missed
    }


def made(name: str, ours: float | None, band: str = "within x4") -> report.Result:
    row = Row(name=name, group="g", case={"id": name, "reproducibility": band}, expected=100)
    verdict = None if ours is None else judge(row.case, ours, 100)
    return report.Result(row=row, verdict=verdict, answer=ours)


def test_a_row_misses_beyond_a_fifth_outside_its_band_or_not_run() -> None:
    results = [
        made("near", 100 * math.exp(0.9 * report.BEYOND)),
        made("twice", 200),
        made("half", 50),
        made("narrow", 101, band="exact"),
        made("nothing", 0),
        made("missing", None),
    ]
    assert report.far(results) == {
        "g": {
            "half": 2.0,
            "missing": report.NOT_RUN,
            "narrow": report.OUTSIDE,
            "nothing": report.OUTSIDE,
            "twice": 2.0,
        }
    }


@pytest.mark.parametrize("change", [{}, {"twice": 2.1}, {"other": 2.0}])
def test_a_table_of_other_rows_or_factors_is_older(change: dict[str, float]) -> None:
    results = [made("twice", 200), made("near", 101)]
    table = {"g": {"twice": 2.0, **change}}
    if change:
        with pytest.raises(AssertionError):
            report.as_listed(results, "g", table)
    else:
        report.as_listed(results, "g", table)
