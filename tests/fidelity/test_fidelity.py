"""Published numbers: no group of the committed table gets worse, and what the app says comes from that table."""

from __future__ import annotations

import json
import math
from statistics import median
from typing import Any

import pytest

from tests.fidelity import kinds, report
from tests.fidelity.cases import NotRun, run
from tests.fidelity.data import Row, rows
from tests.fidelity.judge import judge
from workbench.engine.cost import formulas
from workbench.engine.vertices import load
from workbench.profiler.fidelity import KINDS, typical_errors

ROWS = rows()
TABLE = json.loads(report.TABLE.read_text())
SLOW = ("whole model", "MEM", "configurations", "INEQ", "HALO", "MV")  # many programs, or large ones
SLACK = 0.002  # of |ln ratio|: less than any table shows as a step
QUICK = sorted({row.group for row in ROWS if not row.group.startswith(SLOW)})
LONG = sorted({row.group for row in ROWS if row.group.startswith(SLOW)})


def no_worse(group: str) -> None:
    results = report.all_results(row for row in ROWS if row.group == group)
    now, then = report.summarise(results), TABLE[group]
    said = report.details(results, group)
    assert now["cases"] == then["cases"], "the table is older than the cases: make fidelity"
    for name in ("run", "exact", "within"):
        assert now[name] >= then[name], said
    for name in ("median", "p90"):
        assert (now[name] or 0.0) <= (then[name] or 0.0) + SLACK, said
    report.as_listed(results, group, json.loads(report.FAR.read_text()))


@pytest.mark.parametrize("group", QUICK)
def test_no_group_gets_worse(group: str) -> None:
    no_worse(group)


@pytest.mark.slow
@pytest.mark.parametrize("group", LONG)
def test_no_group_of_whole_models_gets_worse(group: str) -> None:
    no_worse(group)


def test_every_case_has_a_source_and_a_line_in_the_table() -> None:
    assert {row.group for row in ROWS} == set(TABLE)
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.name for row in ROWS if "id" in row.case and not row.case.get("source")] == []


def test_an_answer_does_not_depend_on_what_is_expected() -> None:
    for row in (next(row for row in ROWS if row.group == group) for group in ("VTX", "AMP", "vertex cycles")):
        bare = {key: value for key, value in row.case.items() if key not in ("expected", "cycles")}
        assert run(bare) == run({**row.case, "expected": -1, "cycles": -1})


def test_an_unknown_case_says_why_it_is_not_run() -> None:
    answer = run({"id": "NOSUCH-1", "description": "", "quantity": "cycles"})
    assert isinstance(answer, NotRun)
    assert answer.reason


@pytest.mark.parametrize(
    ("reproducibility", "ours", "exact", "within"),
    [
        ("exact", 100, True, True),
        ("exact", 101, False, False),
        ("within 2%", 102, False, True),
        ("within 2%", 103, False, False),
        ("within x2 / ordering", 50, False, True),
        ("within x2", 201, False, False),
        ("ordering", 900, False, True),
    ],
)
def test_bands_are_those_the_case_states(reproducibility: str, ours: int, exact: bool, within: bool) -> None:
    verdict = judge({"reproducibility": reproducibility}, {"a": [ours]}, {"a": [100]})
    assert (verdict.exact, verdict.within) == (exact, within)
    assert verdict.error == pytest.approx(abs(math.log(ours / 100)))


def test_a_missing_part_of_an_answer_is_not_within_a_band() -> None:
    case = {"reproducibility": "within x2"}
    assert not judge(case, {"a": 1}, {"a": 1, "b": 2}).within
    assert not judge(case, 0, 2).within
    assert judge({"quantity": "cycles <="}, 3, 4).exact
    assert not judge({"tolerance": "lower bound"}, 3, 4).within


def test_inequalities_are_judged_by_their_relations() -> None:
    case = {"id": "INEQ-x"}
    assert judge(case, "total(a 5M) > total(b 3M)", "total(a 9.7M) > total(b 5.3M)").exact
    assert not judge(case, "5 < 4 > 6", "1 < 2 < 3").within
    assert judge(case, "once 3 < twice 4", "memory").within


def test_numbers_of_which_only_an_order_is_claimed_must_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"F-a": 10, "F-b": 20, "G-a": 2, "G-b": 1}
    monkeypatch.setattr(report, "run", lambda case: answers[case["id"]])
    made = [
        Row(name=name, group="g", case={"id": name, "reproducibility": "ordering"}, expected=expected)
        for name, expected in (("F-a", 1), ("F-b", 3), ("G-a", 1), ("G-b", 3))
    ]
    verdicts = [each.verdict for each in report.all_results(made)]
    assert [verdict and verdict.within for verdict in verdicts] == [True, True, False, False]


def test_the_table_counts_and_ranks() -> None:
    def made(name: str, ours: float) -> report.Result:
        case = {"id": name, "reproducibility": "within x2"}
        row = Row(name=name, group="g", case=case, expected=100)
        return report.Result(row=row, verdict=judge(case, ours, 100))

    missing = report.Result(row=Row(name="z", group="g", case={}, expected=1), verdict=None, reason="no")
    line = report.by_group([made("a", 100), made("b", 110), made("c", 300), missing])["g"]
    assert (line["cases"], line["run"], line["exact"], line["within"]) == (4, 3, 1, 2)
    assert (line["median"], line["p90"], line["worst"]) == (round(math.log(1.1), 4), round(math.log(3), 4), "c")


def test_what_the_app_knows_comes_from_the_committed_tables() -> None:
    tables = {**TABLE, **json.loads(report.ALSO.read_text())}
    known = typical_errors()
    for found in known.values():
        assert 0 <= found["typical"] <= found["spread"]
        assert found["cases"] <= sum(tables[group]["run"] for group in found["groups"])
        assert found["against"]
    assert {"cycles", "memory", "product", "exchange", "sync", "host", "vertex elementwise", "vertex conv"} <= set(
        known
    )


def test_every_kind_that_has_numbers_is_one_that_the_app_names() -> None:
    load()
    families = {each.error_kind for name, each in formulas.items() if name.startswith("vertex:")}
    assert set(typical_errors()) <= set(KINDS) | families
    assert set(kinds.RULES) <= set(KINDS)
    assert {each.error_kind for _, each in formulas.items()} - families <= set(KINDS)


def test_a_kind_is_told_by_its_own_numbers_alone() -> None:
    def made(name: str, group: str, ours: Any, theirs: Any, **case: str) -> report.Result:
        row = Row(name=name, group=group, case={"id": name, "reproducibility": "within x2", **case}, expected=theirs)
        return report.Result(row=row, verdict=judge(row.case, ours, theirs), answer=ours)

    whole = {"total": 300, "exchange_sum": 100, "sync_sum": 10}
    found = kinds.typical(
        [
            made("MV-MK1-prof", "MV", {"total": 300, "exchange_sum": 150, "sync_sum": 40}, whole),
            made("TS-ADD10", "TS", 500, 100, config="Mk2 hardware"),  # gave the launch its cycles
            made("LIVE-sum", "LIVE", 3, 1),  # of no kind that is shown
        ]
    )
    assert {kind: each["typical"] for kind, each in found.items()} == {"cycles": 0.0, "exchange": 0.5, "sync": 3.0}
    assert "launch" not in typical_errors()  # nothing measures it alone


def test_estimates_do_not_count_beside_measurements() -> None:
    rows = [row for row in ROWS if row.name == "AMP-CURVE" or row.case.get("name") == kinds.AMP_VERTEX]
    found = kinds.typical(report.all_results(rows))["vertex conv"]
    assert found["against"] == ["hardware"]
    assert found["cases"] == 1 < len(rows)
    assert found["numbers"] == 128


def test_how_each_memory_turned_out_is_kept_beside_its_error() -> None:
    """Of each number that decides a verdict: published over modelled, from which its kind's errors follow."""
    known = typical_errors()
    for kind in kinds.VERDICTS:
        ratios = known[kind]["ratios"]
        assert ratios == sorted(ratios)
        assert len(ratios) == known[kind]["numbers"]
        errors = sorted(abs(math.log(ratio)) for ratio in ratios)
        assert math.exp(median(errors)) - 1 == pytest.approx(known[kind]["typical"], abs=2e-4)
        assert math.exp(errors[math.ceil(0.9 * len(errors)) - 1]) - 1 == pytest.approx(known[kind]["spread"], abs=2e-4)
    row = Row(name="MEM-MLP-a", group="MEM", case={"id": "MEM-MLP-a", "reproducibility": "within x2"}, expected=300)
    found = kinds.typical([report.Result(row=row, verdict=judge(row.case, 200, 300), answer=200)])
    assert found["memory"]["ratios"] == [1.5]
