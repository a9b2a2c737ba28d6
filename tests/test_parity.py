"""The table of parity: each row's views are there, are part of a profile's page, and its tests are run."""

from __future__ import annotations

import pytest

from tests.node_ids import decorators_of, function_of
from tests.parity import ROWS, Row
from tests.profiler.handmade import handmade_pipeline
from workbench.profiler.registry import exports
from workbench.profiler.report import face

# Of several profiles, or of what is compared: no part of the page of one.
OF_SEVERAL = {"comparison", "schedules"}
TESTS = [(row, test) for row in ROWS for test in row.tests]


def test_there_are_fourteen() -> None:
    assert len({row.report for row in ROWS}) == len({row.text for row in ROWS}) == len(ROWS) == 14


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.report)
def test_its_views_are_shown_and_its_files_are_written(row: Row) -> None:
    of_one = face("html").shown(handmade_pipeline())
    assert row.views
    for name in row.views:
        assert all(callable(getattr(face(name), form)) for form in ("widget", "svg", "figure", "html"))
        assert (name in of_one) == (name not in OF_SEVERAL)
    assert all(name in exports for name in row.exports)


@pytest.mark.parametrize(("row", "test"), TESTS, ids=[f"{row.report}: {test}" for row, test in TESTS])
def test_its_test_is_there_and_runs(row: Row, test: str) -> None:
    function = function_of(test)
    assert function is not None, f"{test} is not there"
    assert not decorators_of(function) & {"skip", "xfail"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.report)
def test_it_is_looked_at_in_a_browser(row: Row) -> None:
    assert any(test.startswith("tests/browser/") for test in row.tests)
    assert any(not test.startswith("tests/browser/") for test in row.tests)
