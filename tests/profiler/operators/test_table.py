"""Rows of operators: flops count runs of an operator, not of the loops inside it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from tests.engine.ops.planned import lowered
from tests.engine.planner.cases import dot_node
from workbench import api
from workbench.engine.compile import Clock, measure
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.profiler.collect import collect
from workbench.profiler.operators.table import OperatorTable
from workbench.profiler.profile import Profile
from workbench.profiler.reports.roofline import Roofline
from workbench.profiler.schema import SCHEMA

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
    assert row["plan_cycles"] == case.plan.total_cycles  # all its steps
    # Bound by the float-partials rate: 32 of the peak's 64 multiply-accumulates a cycle and tile.
    assert row["utilisation"] == FLOPS / (row["cycles"] * 2 * 64 * 4) <= 0.5


@pytest.fixture(scope="module")
def shared() -> Profile:
    """Three equal products, whose body is one, and another that stands alone."""
    square, wide = np.ones((64, 64), np.float32), np.ones((64, 96), np.float32)
    function = lambda x, a, b, c, d: ((x @ a) @ b) @ c @ d  # noqa: E731
    return api.compile(function, square, square, square, square, wide, target=FOUR).profile


def test_cycles_of_a_body_are_its_operators_in_equal_parts(shared: Profile) -> None:
    rows = shared.operators.set_index("name")
    bodies = rows["body"][rows["body"] != ""]
    assert (len(bodies), bodies.nunique()) == (3, 1)
    inside = shared.steps["parent"].str.startswith(bodies.iloc[0])
    body_cycles = int(shared.steps["total_cycles"][inside].sum())
    assert body_cycles > 0
    assert body_cycles % 3 == 0
    for name, row in rows.iterrows():
        mine = shared.steps["operator"] == name
        own, part = (int(shared.steps["total_cycles"][mine & each].sum()) for each in (~inside, inside))
        explained = shared.explain(operator=str(name))
        assert part == (body_cycles // 3 if row["body"] else 0)
        assert explained.value == row["cycles"] == own + part
        assert sum(part.value for part in explained.parts) == explained.value
        assert any("x 1 / 3 runs" in part.formula for part in explained.parts) == bool(row["body"])


def test_cycles_of_a_plan_stand_beside_those_of_the_steps(shared: Profile) -> None:
    """Equal operators have equal plans, each counted once; what the planner counts is near what the steps take."""
    rows = shared.operators
    alike = rows[rows["body"] != ""]
    assert alike["plan_cycles"].nunique() == 1
    for row in rows.to_dict("records"):
        assert f"; {row['plan_cycles']} cycles (" in row["plan"]
        assert 0.5 < row["plan_cycles"] / row["cycles"] < 1.5
        assert row["plan_cycles"] != row["cycles"]
        explained = shared.explain(operator=row["name"])
        assert explained.inputs["plan_cycles"] == row["plan_cycles"]
        assert "what the planner charged" in explained.formula


def test_cycles_of_a_plan_count_every_run_and_what_is_not_planned_has_none() -> None:
    def function(rows: Any, weights: Any) -> Any:
        from jax import lax

        return lax.fori_loop(0, 5, lambda _, left: left @ weights + 1, rows)

    square = np.ones((64, 64), np.float32)
    rows = api.compile(function, square, square, target=FOUR).profile.operators.set_index("op")
    once = int(rows.loc["matmul", "plan"].partition("; ")[2].partition(" cycles")[0])
    assert rows.loc["matmul", "plan_cycles"] == 5 * once
    assert set(rows["plan_cycles"].drop("matmul")) == {0}


def test_a_point_of_the_roofline_counts_the_bytes_of_its_body(shared: Profile) -> None:
    steps, points = shared.steps, Roofline.from_profile(shared).points
    received = steps["bytes_received"] * steps["times"]
    inside = steps["parent"].isin(set(shared.operators["body"]) - {""})
    mine = steps["operator"].isin(set(points["name"]))
    assert points["exchanged_bytes"].sum() == received[mine].sum() > received[mine & ~inside].sum()


def test_a_loop_has_what_stands_around_its_body() -> None:
    """Slices, stacks, carries and the counter are the loop's; the product inside has a row of its own."""

    def function(weights: Any, rows: Any) -> Any:
        from jax import lax

        return lax.scan(lambda state, row: ((state + row) @ weights, state), rows[0], rows)

    profile = api.compile(function, np.ones((16, 16), np.float32), np.ones((5, 16), np.float32), target=FOUR).profile
    rows = profile.operators.set_index("op")
    assert rows.loc["scan", "plan"] == "repeated 5 times"
    assert profile.explain(operator=rows.loc["scan", "name"]).value == rows.loc["scan", "cycles"] > 0
    on_chip = ~profile.steps["kind"].isin(["Sync", "StreamCopy"])
    owned = profile.steps["operator"] != ""
    assert owned[on_chip].all()
    assert profile.operators["cycles"].sum() == profile.steps["total_cycles"][owned].sum()
    names = profile.steps["name"][profile.steps["operator"] == rows.loc["scan", "name"]]
    assert {name.rsplit("/", 1)[-1] for name in names} >= {"slice", "stack", "count"}


@pytest.mark.parametrize("proportion", [0.6, 0.05, 0.01])
def test_what_is_beyond_a_bound_is_found_without_the_table_and_is_what_the_table_says(proportion: float) -> None:
    config = wb.ipu.config.IPUConfig()
    config.matmuls.poplar_options = {"availableMemoryProportion": str(proportion)}
    square = np.ones((256, 256), np.float32)
    function = lambda x, a, b: jax.nn.softmax(x @ a) @ b  # noqa: E731
    profile = wb.compile(function, square, square, square, target=FOUR, config=config).profile
    table = profile.tables["operators"]
    assert isinstance(table, OperatorTable)
    names = [name for name in table.steps_by_caller.operator.tolist() if name]
    before = {name: [table.beyond(name, bound) for bound in (0, 1_000, 100_000)] for name in names}
    assert set(table) == set(SCHEMA["operators"])
    assert "made" not in table
    assert "_table" not in vars(table)
    taken = dict(zip(table["name"].tolist(), table["temporary_bytes"].tolist(), strict=True))
    assert max(taken.values()) > 1_000
    for name, temporary_bytes in taken.items():
        assert before[name] == [temporary_bytes * (temporary_bytes > bound) for bound in (0, 1_000, 100_000)]


@pytest.mark.parametrize("stages", [1, 2])
def test_nothing_beyond_a_bound_is_missed_in_bodies_that_layers_share(stages: int) -> None:
    """The bound that is looked at first counts whole bodies; of a usual compile it is enough, and nobody asks for whom
    each step runs."""
    model = wb.ready("bert-base", layers=4, hidden=64, heads=2, sequence_length=16)
    asked: dict[str, Any] = {"mode": "training", "batch_size": 1}
    if stages > 1:
        asked |= {"stages": ["encoder_1"], "gradient_accumulation_steps": 4}
    profile = api.compile(model, target=target("ipu2", tiles_per_ipu=64), **asked).profile
    table = profile.tables["operators"]
    assert isinstance(table, OperatorTable)
    assert "steps_by_caller" not in vars(table)
    shared = 0
    for row in profile.operators.to_dict("records"):
        taken, again = row["temporary_bytes"], row["direction"] == "recompute"
        shared += bool(row["body"])
        assert table.beyond(row["name"], taken) == 0
        assert again or taken == 0 or table.beyond(row["name"], taken - 1) == taken
    assert shared > 20


def test_the_sentence_names_the_peak_that_its_rate_is_of(shared: Profile) -> None:
    assert shared.operations.sentence.endswith("% of the float32 peak rate")
