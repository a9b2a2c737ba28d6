"""BERT-Large on a Pod16: the committed plan against the configuration that is shipped, both as modelled."""

from __future__ import annotations

import json

import pytest

from tests.splits import pod
from tests.splits.write import SHIPPED, stored

IPUS = 16
COLUMNS = {"source", "system", "fits", "arguments", "table", "untried", "best", "shipped"}


def test_the_plan_fits_and_is_no_slower_than_what_is_shipped() -> None:
    row = pod.stored()
    best, shipped = row["best"], row["shipped"]
    assert (row["source"], row["system"]) == (SHIPPED, "Bow Pod16")
    assert row["fits"]
    assert best["fits"]
    assert shipped["fits"]
    assert best["samples_per_second"] >= shipped["samples_per_second"]
    # One clock and one batch: what is no slower takes no more cycles; and the table of splits has the same program.
    assert best["total_cycles"] <= shipped["total_cycles"]
    published = stored()[-1]["published"]
    assert shipped == {name: published[name] for name in shipped}


def test_the_row_says_what_was_tried_and_what_was_not() -> None:
    row = pod.stored()
    assert set(row) >= COLUMNS
    table, arguments = row["table"], row["arguments"]
    assert sum(use["compiled"] for use in table) <= pod.COMPILES
    assert {use["ipus"] for use in table} == {IPUS}
    assert {use["stages"] for use in table} == {1, 2, 4, 8, 16}
    for use in table:
        assert use["stages"] * use["replicas"] == IPUS
        assert use["replicas"] * use["batch_size"] * use["gradient_accumulation_steps"] == pod.global_batch()
        assert (use["problem"] == "") == (use["samples_per_second"] is not None)
        # The shipped shares of memory are one for each of four IPUs.
        assert use["stages"] == 4 or "has 4 numbers" in use["problem"]
    first, *others = table
    assert first["fits"]
    assert round(first["samples_per_second"], 2) == row["best"]["samples_per_second"]
    assert not any(use["samples_per_second"] > first["samples_per_second"] for use in others if use["fits"])
    for name in ("replicas", "batch_size", "gradient_accumulation_steps"):
        assert arguments[name] == first[name]
    assert len(arguments["stages"]) == first["stages"] - 1
    assert arguments["pipeline_schedule"] == first["schedule"]


@pytest.mark.slow
def test_the_plan_compiles_to_what_it_says() -> None:
    row = pod.stored()
    assert json.loads(json.dumps(pod.compiled(row["arguments"]))) == row["best"]


@pytest.mark.slow
def test_the_shipped_configuration_compiles_to_what_the_row_says() -> None:
    assert pod.as_shipped() == pod.stored()["shipped"]
