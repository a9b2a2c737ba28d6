"""Six models on 2, 4 and 8 IPUs: the committed table of `make splits`, and what of it is compiled anew.

Both ends of GPT-2 share a table of weights: its last stage is on the first IPU.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.splits.write import IPUS, PUBLISHED, SHARED, keys, misses, row, stored

ANEW = "bert-base, 4"  # the row that is compiled again: one with stages of which something was expected
# Of what came: the median of all stages, and what nine in ten are within.
CYCLES, BYTES = (0.05, 0.10), (0.10, 0.25)
# Rows whose slowest stage is slower than that of even stages, which do not fit, and what memory makes them take: layers
# that are computed again, and accumulators in streaming memory, which every micro-batch reads and writes there.
FORCED = dict.fromkeys(
    ("bert-large, 2", "gpt2, 2", "gpt2, 4", "gpt2, 8"),
    ("recomputation", "activations", "gradient_accumulation_buffers"),
)


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
    """Of every row but those named, where even stages do not fit and what does takes what makes them slower."""
    slower = set()
    for each in stored():
        even, best = each["attempts"][0], each["attempts"][each["best"]]
        assert best["fits"], each["key"]
        if max(best["cycles"]) > max(even["cycles"]):
            slower.add(each["key"])
    assert slower == set(FORCED)


@pytest.mark.parametrize("key", FORCED)
def test_what_is_slower_than_even_stages_is_forced_by_memory(key: str) -> None:
    """Nothing that was compiled without all of what is named fits, and it is the quickest of what fits."""
    (found,) = [each for each in stored() if each["key"] == key]
    best, wanted = found["attempts"][found["best"]], set(FORCED[key])

    def has_all(attempt: dict[str, Any]) -> bool:
        return wanted <= {*attempt["arguments"], *attempt["arguments"].get("offload", ())}

    without = [each for each in found["attempts"] if not has_all(each)]
    assert has_all(best)
    assert found["attempts"][0] in without
    assert not any(each["fits"] for each in without)
    assert best["samples_per_second"] == max(each["samples_per_second"] for each in found["attempts"] if each["fits"])


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
