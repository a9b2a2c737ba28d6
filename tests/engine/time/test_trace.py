"""The cycles of a trace by cause, against the same program unrolled in full and by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder, sequence
from tests.engine.unrolled import unrolled
from workbench.engine.program import Call, Overlap, Repeat, TileProgram
from workbench.engine.time import execute as execute_module
from workbench.engine.time.execute import execute
from workbench.engine.time.trace import Trace


def pipeline() -> Trace:
    """Two stages, three micro-batches, unequal; a copy over the link in every column."""
    b = Builder(ipus=2)
    b.functions["f0"] = sequence(b.compute(10, ipu=0), b.sync(ipu=0), Repeat(times=3, body=b.compute(5, ipu=0)))
    b.functions["f1"] = sequence(b.stream(64, ipu=1), b.compute(90, ipu=1))
    move = b.link(4096, 0, 1)
    b.functions["both"] = sequence(move)

    def column(phase: str, *stages: str) -> Overlap:
        return Overlap(branches=tuple(Call(function=name, micro_batch=0) for name in stages), phase=phase)  # type: ignore[arg-type]

    steady = Repeat(times=3, body=sequence(column("steady", "f0", "f1"), Call(function="both")))
    return execute(b.program(column("fill", "f0"), Call(function="both"), steady, column("drain", "f1"), b.sync(ipu=0)))


def test_all_blocks_of_an_ipu_are_its_cycle_breakdown() -> None:
    trace = pipeline()
    for ipu in (0, 1):
        rows = unrolled(trace, ipu)
        assert rows[0].cycles_from == 0
        assert rows[-1].cycles_to == trace.total_cycles
        assert all(left.cycles_to == right.cycles_from for left, right in pairwise(rows))
        spent: Counter[str] = Counter()
        for row in rows:
            spent[row.cause] += row.cycles_to - row.cycles_from
        told = {cause: cycles for cause, cycles in trace.cycle_breakdown[ipu].items() if cycles}
        assert told == {cause: cycles for cause, cycles in spent.items() if cycles}
    assert trace.cycle_breakdown[1]["idle_fill"] > 0
    assert trace.cycle_breakdown[0]["idle_wait_host"] == 0  # the host copy of IPU 1 is inside a column


# -- properties ------------------------------------------------------------------------------------------


def assert_breakdown_sums(trace: Trace) -> None:
    """Per IPU the causes sum to the total, which comes from another pass."""
    for spent in trace.cycle_breakdown:
        assert sum(spent.values()) == trace.total_cycles
        assert min(spent.values()) >= 0


@given(programs())
def test_the_cycle_breakdown_sums_to_the_total(program: TileProgram) -> None:
    trace = execute(program)
    assert_breakdown_sums(trace)
    # a third count, from the executions of every step
    for ipu, spent in enumerate(trace.cycle_breakdown):
        mine = [step.id for step in program.steps if ipu in step.ipus]
        busy = sum(trace.steps[number].cycles * trace.executions[number] for number in mine)
        assert busy == sum(cycles for cause, cycles in spent.items() if not cause.startswith("idle"))


@given(programs())
def test_unrolled_blocks_are_the_breakdown(program: TileProgram) -> None:
    trace = execute(program)
    for ipu in range(program.ipus):
        spent: Counter[str] = Counter()
        end = 0
        for row in unrolled(trace, ipu):
            assert row.cycles_from == end
            end = row.cycles_to
            spent[row.cause] += row.cycles_to - row.cycles_from
        assert end == trace.total_cycles
        assert spent == Counter({cause: n for cause, n in trace.cycle_breakdown[ipu].items() if n})


@pytest.mark.parametrize("broken", ["durations", "counting"])
def test_the_sums_fail_when_one_pass_is_broken(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    program = b.program(Repeat(times=3, body=b.compute(20)), b.sync())
    assert_breakdown_sums(execute(program))
    if broken == "durations":  # forgets that loops run several times
        node = execute_module.Durations.node

        def once(self: object, part: object) -> object:
            found = node(self, part)  # type: ignore[arg-type]
            return replace(found, cycles=found.children[0].cycles) if isinstance(part, Repeat) else found

        monkeypatch.setattr(execute_module.Durations, "node", once)
    else:
        of_steps = execute_module.Counting.of_steps

        def dearer(self: object, parts: object, scope: object) -> object:
            found = of_steps(self, parts, scope)  # type: ignore[arg-type]
            return Counter({key: cycles + 1 for key, cycles in found.items()})

        monkeypatch.setattr(execute_module.Counting, "of_steps", dearer)
    with pytest.raises(AssertionError):
        assert_breakdown_sums(execute(program))


def grouped(stages: int, accumulation: int) -> Trace:
    """Equal stages, Grouped: forward columns, then backward columns, each column as long as its one stage."""
    b = Builder(ipus=stages)
    for stage in range(stages):
        b.functions[f"f{stage}"] = b.compute(100, ipu=stage)
        b.functions[f"b{stage}"] = b.compute(200, ipu=stage)

    def column(direction: str, time_: int) -> Overlap:
        order = range(stages) if direction == "f" else range(stages - 1, -1, -1)
        running = [stage for place, stage in enumerate(order) if 0 <= time_ - place < accumulation]
        phase = "fill" if time_ < stages - 1 else "drain" if time_ >= accumulation else "steady"
        return Overlap(branches=tuple(Call(function=f"{direction}{stage}") for stage in running), phase=phase)

    columns = [column(direction, time_) for direction in "fb" for time_ in range(accumulation + stages - 1)]
    return execute(b.program(*columns))


@pytest.mark.parametrize(("stages", "accumulation"), [(2, 4), (4, 16)])
def test_bubbles_of_equal_stages_are_the_closed_form(stages: int, accumulation: int) -> None:
    trace = grouped(stages, accumulation)
    for spent in trace.cycle_breakdown:
        idle = spent["idle_fill"] + spent["idle_drain"]
        assert spent["idle_wait_stage"] == 0
        # idle / total == (N - 1) / (G + N - 1), in whole numbers
        assert idle * (accumulation + stages - 1) == trace.total_cycles * (stages - 1)
