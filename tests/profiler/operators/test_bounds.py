"""What availableMemoryProportion bounds: the program keeps it, or the profile says which operator does not and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.profiler.operators.bounds import beyond_bounds

TILE_BYTES = 624 * 1024


def product(rows: int, depth: int, columns: int, dtype: str, proportion: float) -> Any:
    """The profile of one matrix product on 64 tiles."""
    config = wb.ipu.config.IPUConfig()
    config.matmuls.poplar_options = {"availableMemoryProportion": str(proportion)}
    operands = np.zeros((rows, depth), dtype), np.zeros((depth, columns), dtype)
    return wb.compile(lambda a, b: a @ b, *operands, target=wb.target("ipu2", tiles_per_ipu=64), config=config).profile


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([64, 256, 1024]),
    st.sampled_from([256, 1024, 4096]),
    st.sampled_from([64, 512, 1024]),
    st.sampled_from(["float32", "float16"]),
    st.sampled_from([0.6, 0.1, 0.07, 0.02]),
)
def test_a_product_keeps_its_bound_or_is_named(
    rows: int, depth: int, columns: int, dtype: str, proportion: float
) -> None:
    profile = product(rows, depth, columns, dtype, proportion)
    allowed = int(proportion * TILE_BYTES)
    (operator,) = profile.operators.query("op == 'matmul'").to_dict("records")
    said = [text for text in profile.meta["warnings"] if "availableMemoryProportion" in text]
    assert bool(said) == (operator["temporary_bytes"] > allowed)
    if "no plan within" not in operator["plan"]:
        # One copy of what steps are taken from is not counted, by PopLibs neither; on a tile it is at most an operand.
        held = (rows + columns) * depth * np.dtype(dtype).itemsize / 64
        assert operator["temporary_bytes"] <= allowed + held


@pytest.mark.parametrize("proportion", [0.3, 0.1, 0.07, 0.05, 0.02])
def test_less_memory_never_takes_more(proportion: float) -> None:
    """1,024 cubed in halves on 64 tiles took 33,792 B at 0.1 and 102,400 B at 0.07 while steps went over both kinds of
    channels, as the sums of all of them were kept in the type of the partials."""
    (operator,) = product(1024, 1024, 1024, "float16", proportion).operators.query("op == 'matmul'").to_dict("records")
    assert operator["temporary_bytes"] <= max(proportion * TILE_BYTES, 33_792)


def test_each_reason_is_a_sentence_with_its_furthest() -> None:
    described = [
        {"id": "a:forward", "bound_bytes": 100, "plan": "amp"},
        {"id": "b:forward", "bound_bytes": 100, "plan": "amp; no plan within 100 B: the bound was doubled 1 times"},
        {"id": "c:forward", "bound_bytes": 10, "plan": "hmac; no plan within 10 B: the bound was doubled 2 times"},
        {"id": "d:forward", "bound_bytes": 0, "plan": "amp"},
    ]
    taken = {"a:forward": 100, "b:forward": 150, "c:forward": 40, "d:forward": 7}
    said = beyond_bounds(described, lambda name, bound_bytes: taken[name])
    assert len(said) == 1
    assert said[0].startswith("2 operators take more")
    assert "furthest c:forward with 40 B for 10 B: the planner found no plan" in said[0]
