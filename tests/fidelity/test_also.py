"""Cases found after the engine was held against the others: each still answers, and no group of them gets worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fidelity import report
from tests.fidelity.data import also

ROWS = also()
TABLE = Path(__file__).parent / "also.json"
SLACK = 0.002  # of |ln ratio|: less than any table shows as a step


def test_every_row_has_a_source_and_a_name_of_its_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.name for row in ROWS if not row.case.get("source")] == []


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted({row.group for row in ROWS}))
def test_no_group_gets_worse(group: str, request: pytest.FixtureRequest) -> None:
    results = report.all_results(row for row in ROWS if row.group == group)
    now, table = report.summarise(results), json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if request.config.getoption("--update-golden"):
        TABLE.write_text(json.dumps({**table, group: now}, indent=1, sort_keys=True) + "\n")
        return
    then, said = table[group], report.details(results, group)
    assert now["cases"] == then["cases"], "also.json is older than its rows: pytest --update-golden"
    for name in ("run", "exact", "within"):
        assert now[name] >= then[name], said
    for name in ("median", "p90"):
        assert (now[name] or 0.0) <= (then[name] or 0.0) + SLACK, said
