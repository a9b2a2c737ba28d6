"""Cases found after the engine was held against the others: each still answers, and no group of them gets worse."""

from __future__ import annotations

import json

import pytest

from tests.fidelity import report
from tests.fidelity.cases import run
from tests.fidelity.data import also
from tests.fidelity.family_compute_sets import operations
from tests.fidelity.pipeline_memory import Asked, asked

ROWS = also()
TABLE = report.ALSO
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
    report.as_listed(results, group, json.loads(report.FAR.read_text()))


@pytest.mark.parametrize(
    ("id", "words", "answer"),
    [
        ("SEM-loop-infeed", "n=4: repeat(6, v+=x), v0=2", 2 + (0 + 1 + 2 + 3 + 0 + 1)),
        ("SEM-loop-infeed-tuple", "n=2, (x,(x+10)/2): repeat(3) v+=a+b, v0=0", (0 + 5) + (1 + 5.5) + (0 + 5)),
        ("SEM-while-fib", "repeat 3: (a,b)->(a+b,a), a=2,b=1", [8, 5]),  # (3, 2), (5, 3), (8, 5)
        ("SEM-while-max", "while i<4 with maximum_iterations=10: v+=i", 0 + 1 + 2 + 3),
        ("SEM-cond", "cond(p, a*b, c-a) a=2,b=5,c=3", {"true": 10, "false": 1}),
    ],
)
def test_the_numbers_are_those_of_the_words(id: str, words: str, answer: object) -> None:
    assert run({"id": id, "description": words, "config": "", "quantity": "value"}) == answer


def test_sizes_are_those_of_the_words() -> None:
    """Half the rows of a variable over half the tiles: as much on a tile."""
    rows = [
        {"id": "MEM-WIDE-init", "description": f"f32[{size},256]", "config": f"{tiles} tiles", "quantity": "max"}
        for size, tiles in ((64, 8), (128, 16), (128, 8))
    ]
    small, wide, twice = (run(row) for row in rows)
    assert abs(small - wide) < 64  # tiles' lists of who sends what differ by a few words
    assert 8192 <= twice - small <= 8192 + 128  # 64 x 256 floats more on 8 tiles, and words of code to fill them


def test_a_pipeline_is_found_by_the_words_or_by_the_test() -> None:
    told = {"id": "MEM-PIPE-x", "description": "Grouped + recomputation Compare3", "quantity": "max tile bytes"}
    taken = {
        "id": "MEM-PIPE-y",
        "description": "",
        "quantity": "max tile bytes",
        "source": "python/ipu/tests/pipelining_grouped_recomputation_test.py:283 [testPipelineCompare3]",
    }
    assert asked(told) == asked(taken) == Asked(network="3", schedule="Grouped", recomputed=True)
    assert asked({**told, "description": "Sequential Compare2"}) == Asked(
        network="2", schedule="Sequential", recomputed=False
    )
    assert asked({**told, "description": "something else"}) is None


def test_operations_are_the_last_words_of_a_path() -> None:
    paths = ["__seed*", "cnv3*/convolution*/Conv_3x3", "ba3*/fusion/Op/Add", "Mean/convert*/Cast", "mul/multiply"]
    assert operations(paths) == operations(["Add", "Cast", "Conv", "Multiply"]) == ["Add", "Cast", "Conv", "Multiply"]
