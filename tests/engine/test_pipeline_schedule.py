"""Columns of pipelines, counted: who works on what and when, what waits in a FIFO, and how long an IPU waits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.small_programs import Builder
from workbench.engine.pipeline_schedule import (
    Column,
    StageWork,
    Stretch,
    check_count,
    circular_union,
    overlap_length,
    stash_depth,
    stretches,
)
from workbench.engine.program import Call, Overlap, Program, Repeat, Sequence
from workbench.engine.time.execute import execute
from workbench.engine.time.trace import Trace
from workbench.errors import InputError

SIZES = [(stages, 2 * stages * times) for stages in range(2, 7) for times in (1, 2, 5)]
each_size = pytest.mark.parametrize(("stages", "count"), SIZES)


def columns(plan: tuple[Stretch, ...]) -> Iterator[tuple[Column, int]]:
    """Every executed column with what its repetition adds to the micro-batch numbers."""
    for stretch in plan:
        for repetition in range(stretch.times):
            for column in stretch.columns:
                yield column, repetition * stretch.stride


def runs(plan: tuple[Stretch, ...]) -> list[list[list[tuple[str, int]]]]:
    """For each column, for each stage: (direction, micro-batch) in order."""
    return [
        [[(work.direction, work.micro_batch + repetition) for work in cell] for cell in column.work]
        for column, repetition in columns(plan)
    ]


@each_size
def test_grouped_takes_every_micro_batch_once_forward_then_once_backward(stages: int, count: int) -> None:
    executed = runs(stretches("Grouped", stages, count))
    for stage in range(stages):
        forward = [m for column in executed for direction, m in column[stage] if direction == "forward"]
        backward = [m for column in executed for direction, m in column[stage] if direction == "backward"]
        assert forward == backward == list(range(count))


@each_size
def test_grouped_hands_on_in_the_next_column(stages: int, count: int) -> None:
    """Forward goes up a stage a column; backward comes down a stage a column, one column after the last forward."""
    executed = runs(stretches("Grouped", stages, count))
    when = {
        (stage, direction, m): number
        for number, column in enumerate(executed)
        for stage, cell in enumerate(column)
        for direction, m in cell
    }
    for m in range(count):
        path = [when[stage, "forward", m] for stage in range(stages)]
        path += [when[stage, "backward", m] for stage in reversed(range(stages))]
        assert [later - earlier for earlier, later in pairwise(path)] == [1] * (2 * stages - 1)


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
@each_size
def test_stash_depth_is_what_the_columns_imply(schedule: str, stages: int, count: int) -> None:
    """Most micro-batches between their forward and their backward at once, less the one being filled."""
    executed = runs(stretches(schedule, stages, count))
    for stage in range(stages):
        in_flight = most = 0
        for column in executed:
            for direction, _ in column[stage]:
                in_flight += 1 if direction == "forward" else -1
                most = max(most, in_flight)
        assert in_flight == 0
        assert stash_depth(schedule, stages, stage) == most - 1


@each_size
def test_backward_stands_before_forward_in_a_column(stages: int, count: int) -> None:
    for column in runs(stretches("Grouped", stages, count)):
        for cell in column:
            assert [direction for direction, _ in cell] in (
                [],
                ["forward"],
                ["backward"],
                ["backward", "forward"],
            )


@each_size
def test_only_full_columns_are_steady_and_repeated(stages: int, count: int) -> None:
    plan = stretches("Grouped", stages, count)
    assert sum(len(stretch.columns) * stretch.times for stretch in plan) == count + 2 * stages - 1
    for stretch in plan:
        for column in stretch.columns:
            full = all(len(cell) == 2 for cell in column.work)
            assert (column.phase == "steady") == full
            assert stretch.times == 1 or full


@pytest.mark.parametrize("stages", range(2, 7))
def test_grouped_inference_fills_and_drains_by_one_stage_a_column(stages: int) -> None:
    executed = runs(stretches("Grouped", stages, 3 * stages, training=False))
    assert len(executed) == 3 * stages + stages - 1
    for number, column in enumerate(executed):
        for stage, cell in enumerate(column):
            expected = [("forward", number - stage)] if 0 <= number - stage < 3 * stages else []
            assert cell == expected


@pytest.mark.parametrize("training", [True, False])
def test_sequential_runs_one_stage_at_a_time(training: bool) -> None:
    executed = runs(stretches("Sequential", 3, 2, training=training))
    order = [(stage, *work) for column in executed for stage, cell in enumerate(column) for work in cell]
    forward = [[(stage, "forward", m) for stage in (0, 1, 2)] for m in (0, 1)]
    backward = [[(stage, "backward", m) for stage in (2, 1, 0)] if training else [] for m in (0, 1)]
    assert order == [*forward[0], *backward[0], *forward[1], *backward[1]]


@each_size
def test_interleaved_takes_turns(stages: int, count: int) -> None:
    """2G + 2N - 2 columns; a micro-batch moves on an element a column, and no IPU has two works in one."""
    executed = runs(stretches("Interleaved", stages, count))
    assert len(executed) == 2 * count + 2 * stages - 2
    when = {
        (direction, stage, m): number
        for number, column in enumerate(executed)
        for stage, cell in enumerate(column)
        for direction, m in cell
    }
    for m in range(count):
        path = [("forward", stage) for stage in range(stages)]
        path += [("backward", stage) for stage in reversed(range(stages))]
        assert [when[*element, m] for element in path] == list(range(2 * m, 2 * m + 2 * stages))
    assert all(len(cell) <= 1 for column in executed for cell in column)


UNIONS = {
    (0, 1, 2, 0, 0, 2, 1, 0): (0, 2),  # rotations 0 and 2 differ everywhere; by hand, 1 meets 0 at the fourth place
    (0, 1, 1, 0): (0, 2),
    (0, 1, 2, 3, 3, 2, 1, 0): (0, 2, 4, 6),
    (0, 1, 2, 1, 0, 1): (0, 1),
    (2, 2, 2): (0,),
    (0, 1, 3, 2): (0, 1, 2, 3),
    (0, 1, 2, 3, 0): (0, 2),  # a rotation by 1 or 4 puts the two zeros upon each other
}


@pytest.mark.parametrize("path", UNIONS, ids=str)
def test_rotations_that_meet_nowhere(path: tuple[int, ...]) -> None:
    assert circular_union(path) == UNIONS[path]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=10))
def test_a_circular_union_never_asks_an_ipu_twice_and_no_rotation_is_left_out(path: list[int]) -> None:
    found = circular_union(path)
    size = len(path)

    def apart(left: int, right: int) -> bool:
        return all(path[(left + i) % size] != path[(right + i) % size] for i in range(size))

    assert found[0] == 0
    assert all(apart(a, b) for a in found for b in found if a != b)
    for shift in set(range(size)) - set(found):
        assert not all(apart(shift, kept) for kept in found if kept < shift)


@pytest.mark.parametrize("devices", [(0, 1, 2, 1, 0, 1), (0, 1, 2, 3, 0), (2, 0, 1), (0, 0, 1)])
@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
@pytest.mark.parametrize("training", [True, False])
def test_stages_that_share_ipus(schedule: str, devices: tuple[int, ...], training: bool) -> None:
    stages = len(devices)
    if schedule == "Interleaved" and training and len(set(devices)) < stages:
        with pytest.raises(InputError, match="under the Interleaved schedule in training"):
            stretches(schedule, stages, 4 * stages, devices=devices)
        return
    count = 2 * overlap_length(schedule, devices, training=training) + (schedule == "Sequential")
    plan = stretches(schedule, stages, count, training=training, devices=devices)
    seen: dict[tuple[int, str], list[int]] = {}
    for column, more in columns(plan):
        for ipu, cell in enumerate(column.work):
            assert {devices[work.stage] for work in cell} <= {ipu}
            assert schedule == "Grouped" or len(cell) <= 1
            for work in cell:
                seen.setdefault((work.stage, work.direction), []).append(work.micro_batch + more)
    directions = ("forward", "backward") if training else ("forward",)
    assert seen == {(s, d): list(range(count)) for s in range(stages) for d in directions}


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved"])
@each_size
def test_a_recomputation_is_in_the_column_before_its_backward_pass_behind_a_forward_turn(
    schedule: str, stages: int, count: int
) -> None:
    plan = stretches(schedule, stages, count, recomputed=range(stages - 1))
    executed = runs(plan)
    backward = {
        (stage, m): number
        for number, column in enumerate(executed)
        for stage, cell in enumerate(column)
        for direction, m in cell
        if direction == "backward"
    }
    again: dict[tuple[int, int], int] = {}
    for number, (column, more) in enumerate(columns(plan)):
        for stage, cell in enumerate(column.work):
            for place, work in enumerate(cell):
                if work.direction == "recompute":
                    assert place == len(cell) - 1
                    assert stage in dict(column.turns)  # the element of a forward pass is its stage
                    again[stage, work.micro_batch + more] = number
    assert again == {(s, m): number - 1 for (s, m), number in backward.items() if s < stages - 1}


def idle_share(plan: tuple[Stretch, ...], stages: int, cost: dict[str, int]) -> list[Fraction]:
    """The share of time each stage does nothing when a column lasts as long as its slowest stage."""
    total, busy = 0, [0] * stages
    for column in runs(plan):
        spent = [sum(cost[direction] for direction, _ in cell) for cell in column]
        total += max(spent)
        busy = [own + more for own, more in zip(busy, spent, strict=True)]
    return [Fraction(total - own, total) for own in busy]


@pytest.mark.parametrize("stages", range(2, 17))
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_idle_from_columns_is_the_closed_form_where_it_holds(stages: int, rounds: int) -> None:
    """Facts of the schedules: Grouped for any F and B; Interleaved for F = B; else from its columns, B = 2F:
    each of 2G + 2N - 2 columns costs 2F, but those in which forwards or backwards run alone."""
    count = 2 * stages * rounds
    for cost in EQUAL:
        shares = idle_share(stretches("Grouped", stages, count), stages, cost)
        assert shares == [Fraction(stages - 1, count + stages - 1)] * stages
    shares = idle_share(stretches("Interleaved", stages, count), stages, EQUAL[0])
    assert shares == [Fraction(stages - 1, count + stages - 1)] * stages
    # before the last stage has its first backward pass, N columns, only forwards run
    total = stages * 100 + (2 * count + stages - 2) * 200
    shares = idle_share(stretches("Interleaved", stages, count), stages, EQUAL[1])
    assert shares == [Fraction(total - 300 * count, total)] * stages


def test_interleaved_with_dear_backward_passes_idles_a_third() -> None:
    """N = 4, G = 16, B = 2F: 4 columns of F, 34 of 2F, 16 x 3F busy: 24 / 72."""
    shares = idle_share(stretches("Interleaved", 4, 16), 4, {"forward": 1, "backward": 2})
    assert shares == [Fraction(1, 3)] * 4


EQUAL = [{"forward": 1, "backward": 1}, {"forward": 100, "backward": 200}, {"forward": 7, "backward": 3}]


@pytest.mark.parametrize("cost", EQUAL, ids=["1+1", "100+200", "7+3"])
@each_size
def test_equal_stages_idle_by_the_closed_form(stages: int, count: int, cost: dict[str, int]) -> None:
    """Grouped (N-1)/(G+N-1); Sequential 1-1/N."""
    grouped = idle_share(stretches("Grouped", stages, count), stages, cost)
    assert grouped == [Fraction(stages - 1, count + stages - 1)] * stages
    sequential = idle_share(stretches("Sequential", stages, count), stages, cost)
    assert sequential == [1 - Fraction(1, stages)] * stages


def executed_trace(plan: tuple[Stretch, ...], stages: int) -> Trace:
    """The plan as a tile program whose stages cost the same: 10 worker cycles forward, 30 backward."""
    b = Builder(ipus=stages)
    for stage in range(stages):
        b.functions[f"forward{stage}"] = b.compute(10, ipu=stage)  # 6 * 10 + 80 = 140 cycles
        b.functions[f"backward{stage}"] = b.compute(30, ipu=stage)  # 6 * 30 + 80 = 260 cycles

    def branch(cell: tuple[StageWork, ...]) -> Program:
        calls = [Call(function=f"{w.direction}{w.stage}", ipu=w.stage, micro_batch=w.micro_batch) for w in cell]
        return Sequence(children=tuple(calls))

    def column_node(column: Column) -> Program:
        return Overlap(branches=tuple(branch(cell) for cell in column.work if cell), phase=column.phase)

    parts = [
        Repeat(times=stretch.times, body=Sequence(children=tuple(column_node(c) for c in stretch.columns)))
        for stretch in plan
    ]
    return execute(b.program(*parts))


@each_size
def test_equal_stages_as_a_tile_program_idle_by_the_closed_form(stages: int, count: int) -> None:
    trace = executed_trace(stretches("Grouped", stages, count), stages)
    assert trace.total_cycles == (count + stages - 1) * (140 + 260)
    for spent in trace.cycle_breakdown:
        assert spent["compute"] == count * (140 + 260)
        idle = spent["idle_fill"] + spent["idle_drain"]
        assert spent["idle_wait_stage"] == 0
        assert Fraction(idle, trace.total_cycles) == Fraction(stages - 1, count + stages - 1)


@pytest.mark.parametrize("stages", range(2, 7))
def test_sequential_as_a_tile_program_idles_all_but_one_stage(stages: int) -> None:
    trace = executed_trace(stretches("Sequential", stages, 2), stages)
    for spent in trace.cycle_breakdown:
        assert Fraction(spent["idle_wait_stage"], trace.total_cycles) == 1 - Fraction(1, stages)


def test_a_plan_in_words() -> None:
    text = "\n".join(map(str, stretches("Grouped", 2, 4)))
    assert text == "\n".join(
        [
            "x1",
            "  fill: F0:0 | -",
            "  fill: F0:1 | F1:0",
            "  fill: F0:2 | B1:0 F1:1",
            "x1",
            "  steady: B0:0 F0:3 | B1:1 F1:2",
            "x1",
            "  drain: B0:1 | B1:2 F1:3",
            "  drain: B0:2 | B1:3",
            "  drain: B0:3 | -",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("Grouped", 3, 9),
            "gradient_accumulation_steps is 9, for 3 stages under the Grouped schedule. Expected: a multiple of 6. "
            "To mend it: set gradient_accumulation_steps=12.",
        ),
        (
            ("Grouped", 2, 1),
            "gradient_accumulation_steps is 1, for 2 stages under the Grouped schedule. Expected: a multiple of 4. "
            "To mend it: set gradient_accumulation_steps=4.",
        ),
        (("Spiral", 2, 4), "the pipeline schedule is 'Spiral'. Expected: one of: Grouped, Interleaved, Sequential."),
    ],
    ids=["no multiple", "too few", "unknown schedule"],
)
def test_errors(arguments: tuple[str, int, int], text: str) -> None:
    with pytest.raises(InputError) as caught:
        stretches(*arguments)
    assert str(caught.value) == text


def test_inference_needs_a_multiple_of_the_stages_only() -> None:
    assert stretches("Grouped", 3, 9, training=False)
    with pytest.raises(InputError, match=r"a multiple of 3\."):
        stretches("Grouped", 3, 8, training=False)


def test_any_count_runs_in_sequence_and_on_one_stage() -> None:
    assert stretches("Sequential", 3, 5)
    assert stretches("Grouped", 1, 5)


def test_overlapped_io_needs_two_micro_batches_more_than_a_round_and_no_multiple() -> None:
    check_count("Grouped", 3, 9, training=True, overlapped_io=True)
    with pytest.raises(InputError) as caught:
        check_count("Grouped", 3, 7, training=True, overlapped_io=True)
    assert str(caught.value) == (
        "gradient_accumulation_steps is 7, for 3 stages under the Grouped schedule. Expected: at least 8. "
        "To mend it: set gradient_accumulation_steps=8."
    )


def test_a_map_of_another_length_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^device_mapping has 2 entries for 3 stages\. Expected: the IPU"):
        stretches("Grouped", 3, 6, devices=[0, 1])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("Sequential", 3, (0, 1)),
            "the stages [0, 1] are to be computed again in the column before their backward pass, under the Sequential "
            "schedule, where nothing else runs in it. Expected: the Grouped or the Interleaved schedule, or "
            "recomputation within the backward pass. "
            "To mend it: set the recomputation mode to 'RecomputeAndBackpropagateInterleaved'.",
        ),
        (("Grouped", 3, (1, 3)), "the stages [3] are to be computed again. Expected: stages 0 to 2."),
    ],
)
def test_what_cannot_be_computed_again(arguments: tuple[str, int, tuple[int, ...]], text: str) -> None:
    schedule, stages, again = arguments
    with pytest.raises(InputError) as caught:
        stretches(schedule, stages, 6, recomputed=again)
    assert str(caught.value) == text
