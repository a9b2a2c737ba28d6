"""Six models on 2, 4 and 8 IPUs: the committed table of `make splits`, and what of it is compiled anew.

Both ends of GPT-2 share a table of weights: its last stage is on the first IPU.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.splits.write import IPUS, PUBLISHED, SHARED, keys, misses, row, stored

ANEW = "vit-b16, 2"  # the row that is compiled again
# Of what came: the median of all stages, and what nine in ten are within.
CYCLES, BYTES = (0.05, 0.10), (0.10, 0.25)


def test_there_is_a_row_of_everything_asked() -> None:
    rows = stored()
    assert [each["key"] for each in rows] == keys()
    assert all(each["attempts"] for each in rows)


def test_a_stage_of_both_ends_is_on_the_first_ipu() -> None:
    found = {each["key"]: each["attempts"] for each in stored()}
    for ipus in IPUS:
        for attempt in found[f"{SHARED}, {ipus}"]:
            assert attempt["arguments"]["device_mapping"] == [*range(ipus), 0]
            assert len(attempt["cuts"]) == ipus


def test_something_fits_on_every_number_of_ipus() -> None:
    for each in stored():
        assert each["attempts"][each["best"]]["fits"], each["key"]


def test_the_slowest_stage_is_no_slower_than_of_even_stages() -> None:
    """Where even stages fit: else what fits is taken, though it be slower."""
    for each in stored():
        if each["attempts"] and each["attempts"][0]["fits"]:
            even, best = each["attempts"][0], each["attempts"][each["best"]]
            assert best["fits"]
            assert max(best["cycles"]) <= max(even["cycles"]), each["key"]


def test_as_shipped_what_is_found_is_no_slower_than_what_is_published() -> None:
    (shipped,) = [each for each in stored() if each["key"] == PUBLISHED]
    best, published = shipped["attempts"][shipped["best"]], shipped["published"]
    assert best["fits"]
    assert published["fits"]
    assert best["samples_per_second"] >= published["samples_per_second"]


@pytest.mark.parametrize(("what", "within"), [("cycles", CYCLES), ("bytes", BYTES)])
def test_stages_come_as_expected(what: str, within: tuple[float, float]) -> None:
    off = misses(stored(), what)
    assert len(off) > 100
    assert np.median(off) <= within[0]
    assert np.quantile(off, 0.9) <= within[1]


@pytest.mark.slow
def test_a_row_compiled_again_is_what_the_table_says() -> None:
    (before,) = [each for each in stored() if each["key"] == ANEW]
    assert json.loads(json.dumps(row(ANEW))) == before
