"""Rows of operators: flops count runs of an operator, not of the loops inside it."""

from __future__ import annotations

import pytest

from tests.engine.ops.planned import lowered
from tests.engine.planner.cases import dot_node
from workbench.engine.compile import Clock, measure
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.profiler.collect import collect

FOUR = target("ipu2", tiles_per_ipu=4)
FLOPS = 2 * 256 * 512 * 256


@pytest.mark.parametrize("proportion", [0.6, 0.05])
def test_a_product_in_serial_steps_counts_its_flops_once(proportion: float) -> None:
    case = lowered(
        dot_node((256, 512), (512, 256), ((1,), (0,)), dtype="float16"), FOUR, availableMemoryProportion=proportion
    )
    serial = case.plan.serial_in * case.plan.serial_out
    profile = collect(measure(case.lowered.program, Options(), Clock(lambda phase: None), lowered=case.lowered))
    (row,) = profile.operators.to_dict("records")
    assert (serial > 1) == (proportion < 0.1)
    assert profile.steps["times"].max() == serial
    assert row["flops"] == FLOPS
    # Bound by the float-partials rate: 32 of the peak's 64 multiply-accumulates a cycle and tile.
    assert row["utilisation"] == FLOPS / (row["cycles"] * 2 * 64 * 4) <= 0.5
