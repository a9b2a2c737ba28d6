"""Intervals by hand, then against a program that is simply run; byte curves against sums over variables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.engine.random_programs import programs
from tests.engine.small_programs import Builder, sequence, small_target
from workbench.base.arrays import frozen
from workbench.base.categories import FOOTPRINT_CATEGORIES
from workbench.engine.memory import states as states_module
from workbench.engine.memory.footprint import Footprint, footprint
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.memory.liveness import Liveness, liveness
from workbench.engine.program import (
    Call,
    If,
    Leaf,
    Overlap,
    Program,
    Repeat,
    Step,
    TileProgram,
    Variable,
    children,
)
from workbench.errors import VerificationError


def of(program: TileProgram) -> Liveness:
    return liveness(program, footprint(program))


def test_a_value_is_live_from_its_first_write_to_its_last_read() -> None:
    b = Builder()
    early, late = b.variable([100, 200]), b.variable([40, 0, 8])
    program = b.program(
        b.compute(writes=[early]),
        b.compute(reads=[early], writes=[late]),
        b.compute(reads=[late]),
        b.sync(),
    )
    found = of(program)
    assert found.intervals == (((0, 1),), ((1, 2),))
    assert found.live_bytes(0).tolist() == [[100, 200, 0, 0], [140, 200, 8, 0], [40, 0, 8, 0], [0, 0, 0, 0]]
    assert found.peak_bytes(0).tolist() == [140, 200, 8, 0]
    assert found.peak_positions(0).tolist() == [1, 0, 1, 0]
    assert found.live_variables(0, 1) == (early, late)


def test_using_an_early_tensor_late_raises_liveness_by_its_bytes_between() -> None:
    def curve(late: bool) -> np.ndarray:
        b = Builder()
        early = b.variable([64, 32])
        other = b.variable([8, 8])
        steps = [b.compute(writes=[early]), b.compute(reads=[early], writes=[other])]
        steps += [b.compute(reads=[other], writes=[other]) for _ in range(3)]
        steps += [b.compute(reads=[other, early] if late else [other])]
        return of(b.program(*steps)).live_bytes(0)

    difference = curve(True) - curve(False)
    assert difference[:2].sum() == 0
    assert (difference[2:] == [64, 32, 0, 0]).all()


def called_often() -> TileProgram:
    """A body of three steps with a variable of its own, called four times beside one that is live from then on."""
    b = Builder()
    own, kept = b.variable([32], function="body"), b.variable([8])
    b.functions["body"] = sequence(b.compute(writes=[own]), b.compute(reads=[own]), b.sync())
    calls = [Call(function="body", ipu=0) for _ in range(4)]
    return b.program(*calls[:2], b.compute(writes=[kept]), *calls[2:], b.compute(reads=[kept]))


def test_positions_at_which_the_same_is_live_are_summed_once() -> None:
    found = of(called_often())
    states = found.states(0, found.tables[0])
    assert states.of_position.tolist() == [0, 0, 1, 0, 0, 1, 2, 3, 3, 2, 3, 3, 2, 2]
    assert states.first.tolist() == [0, 2, 6, 7]
    assert found.live_bytes(0)[:, 0].tolist() == [32, 32, 0, 32, 32, 0, 8, 40, 40, 8, 40, 40, 8, 8]
    assert (found.peak_bytes(0)[0], found.peak_positions(0)[0]) == (40, 7)


def test_sets_that_are_told_apart_only_further_on_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 64 bits of every row equal: positions are then summed one by one."""
    numbers = states_module.distinct_numbers

    def second_half(count: int) -> np.ndarray:
        return numbers(count) * (np.arange(count, dtype=np.uint64) >= count // 2)

    monkeypatch.setattr(states_module, "distinct_numbers", second_half)
    found = of(called_often())
    assert found.states(0, found.tables[0]).first.tolist() == list(range(14))
    assert found.live_bytes(0)[:, 0].tolist() == [32, 32, 0, 32, 32, 0, 8, 40, 40, 8, 40, 40, 8, 8]


def test_loops() -> None:
    b = Builder()
    carried, inside, before, after, around = (b.variable([4]) for _ in range(5))
    program = b.program(
        b.compute(writes=[carried, before, around]),  # 0
        Repeat(
            times=5,
            body=sequence(
                b.compute(reads=[around]),  # 1
                b.compute(writes=[inside]),  # 2
                b.compute(reads=[inside, carried, before], writes=[carried]),  # 3
                b.compute(writes=[after]),  # 4
            ),
        ),
        b.compute(reads=[after]),  # 5
        b.compute(reads=[carried]),  # 6
    )
    found = of(program).intervals
    assert found[carried] == ((0, 6),)
    assert found[inside] == ((2, 3),)
    assert found[before] == ((0, 4),)  # read in the loop: it lasts to its end
    assert found[after] == ((1, 5),)  # written in the loop and read after it: all of the loop
    assert found[around] == ((0, 4),)


def test_what_is_read_before_it_is_written_goes_round_the_loop() -> None:
    b = Builder()
    x = b.variable([4])
    body = sequence(b.compute(), b.compute(reads=[x]), b.compute(writes=[x]), b.compute())
    assert of(b.program(b.compute(), Repeat(times=2, body=body))).intervals[x] == ((0, 4),)
    once = of(b.program(b.compute(), Repeat(times=1, body=body))).intervals[x]
    assert once == ((0, 3),)


def test_a_branch_that_may_not_write_leaves_the_old_value_live() -> None:
    b = Builder()
    maybe, surely = b.variable([4]), b.variable([4])
    arms = If(arms=(b.compute(writes=[maybe, surely]), b.compute(writes=[surely])))
    body = sequence(b.compute(), arms, b.compute(reads=[maybe, surely]), b.compute())
    found = of(b.program(Repeat(times=2, body=body))).intervals
    assert found[maybe] == ((0, 4),)
    assert found[surely] == ((1, 3),)


def test_a_function_variable_lives_once_per_call_and_arguments_belong_to_their_call() -> None:
    b = Builder()
    given, scratch, result = (b.variable([4], function="f") for _ in range(3))
    kept = b.variable([4])
    b.functions["f"] = sequence(
        b.compute(reads=[given], writes=[scratch]),
        b.compute(reads=[scratch, kept], writes=[result]),
    )
    call = Call(function="f")
    program = b.program(
        b.compute(writes=[kept]),  # 0
        b.exchange(b.exchanged([4], [0, 4]), writes=[given]),  # 1: part of it
        b.compute(writes=[given]),  # 2: the rest
        call,  # 3 4
        b.compute(reads=[result]),  # 5
        b.compute(),  # 6
        b.compute(writes=[given]),  # 7
        call,  # 8 9
        b.compute(reads=[result]),  # 10
    )
    found = of(program).intervals
    assert found[given] == ((1, 3), (7, 8))
    assert found[scratch] == ((3, 4), (8, 9))
    assert found[result] == ((4, 5), (9, 10))
    assert found[kept] == ((0, 9),)


def test_state_kept_between_calls_is_live_between_them() -> None:
    b = Builder()
    state = b.variable([4], function="f")
    b.functions["f"] = b.compute(reads=[state], writes=[state])
    call = Call(function="f")
    assert of(b.program(b.compute(), call, b.compute(), call, b.compute())).intervals[state] == ((0, 3),)


def test_what_a_loop_reads_before_the_call_that_makes_it_anew_is_not_live_between() -> None:
    """As the residuals of a stage that is computed again at the end of a column and goes backward in the next."""
    b = Builder()
    residual, in_parts = b.variable([4], function="f"), b.variable([4], function="f")
    b.functions["f"] = b.compute(writes=[residual, in_parts])
    call = Call(function="f")
    program = b.program(
        call,  # 0
        Repeat(
            times=3,
            body=sequence(
                b.compute(),  # 1
                b.compute(reads=[residual, in_parts]),  # 2
                b.compute(writes=[in_parts]),  # 3: a part of what the call finishes
                b.compute(),  # 4
                call,  # 5
                b.compute(),  # 6
            ),
        ),
        b.compute(reads=[residual, in_parts]),  # 7
    )
    found = of(program).intervals
    assert found[residual] == ((0, 2), (5, 7))
    assert found[in_parts] == ((0, 7),)


def test_each_ipu_has_its_own_timeline() -> None:
    b = Builder(ipus=2)
    sent, received = b.variable([4], ipu=0), b.variable([8], ipu=1)
    program = b.program(
        b.compute(writes=[sent], ipu=0),
        Overlap(branches=(b.compute(ipu=1), b.compute(ipu=0))),
        b.link(4, 0, 1, reads=[sent], writes=[received]),
        b.compute(reads=[received], ipu=1),
    )
    found = of(program)
    assert [list(line) for line in found.timelines] == [[0, 2, 3], [1, 3, 4]]
    assert found.intervals == (((0, 2),), ((1, 2),))
    assert found.live_bytes(1)[:, 0].tolist() == [0, 8, 8]


def test_a_step_cannot_use_memory_of_another_ipu() -> None:
    b = Builder(ipus=2)
    x = b.variable([4], ipu=1)
    with pytest.raises(VerificationError, match=r"^step 0 compute on ipu 0 uses v0 v0: activation"):
        lifetimes(b.program(b.compute(reads=[x])))


# -- properties ------------------------------------------------------------------------------------------


def run(program: TileProgram, node: Program, ipu: int, at: int) -> Iterator[tuple[int, Leaf]]:
    """(position, step) of every execution on an IPU, each loop gone round twice, each arm taken in turn."""
    if isinstance(node, Step):
        if ipu in node.ipus:
            yield at, node  # type: ignore[misc]
        return
    if isinstance(node, Call):
        yield from run(program, program.functions[node.function], ipu, at)
        return
    for _ in range(2 if isinstance(node, Repeat) and node.times > 1 else 1):
        start = at
        for child in children(node):
            yield from run(program, child, ipu, start)
            start += length(program, child, ipu)


def length(program: TileProgram, node: Program, ipu: int) -> int:
    if isinstance(node, Step):
        return int(ipu in node.ipus)
    if isinstance(node, Call):
        return length(program, program.functions[node.function], ipu)
    return sum(length(program, child, ipu) for child in children(node))


def assert_values_survive(program: TileProgram, intervals: tuple[tuple[tuple[int, int], ...], ...]) -> None:
    """Run it: from a write to any later read that may see it, the variable is live at every step passed."""
    for ipu in range(program.ipus):
        executed = list(run(program, program.entry, ipu, 0))
        last_write: dict[int, int] = {}
        for now, (_, step) in enumerate(executed):
            for number in step.reads:
                variable = program.variables[number]
                if variable.ipu != ipu or variable.always_live:
                    continue
                needed = {position for position, _ in executed[last_write.get(number, 0) : now + 1]}
                live = {at for first, last in intervals[number] for at in range(first, last + 1)}
                assert needed <= live, f"v{number} is read at {now} but not live at {sorted(needed - live)}"
            for number in step.writes:
                last_write[number] = now


@given(programs())
def test_no_value_is_lost_before_its_last_reader(program: TileProgram) -> None:
    assert_values_survive(program, lifetimes(program).intervals)


def test_the_check_fails_when_an_interval_is_cut() -> None:
    b = Builder()
    x = b.variable([4])
    program = b.program(b.compute(writes=[x]), b.compute(), b.compute(reads=[x]))
    assert_values_survive(program, (((0, 2),),))
    with pytest.raises(AssertionError, match=r"v0 is read at 2 but not live at \[2\]"):
        assert_values_survive(program, (((0, 1),),))


def assert_reconciled(found: Liveness) -> None:
    """At every (tile, step) the categories sum to always-live plus live bytes."""
    for ipu in range(found.program.ipus):
        live = found.live_bytes(ipu)
        for position in range(len(live)):
            parts = sum(found.category_bytes(ipu, position).values())
            assert (parts == live[position] + found.always_live_bytes(ipu)).all()


@given(programs())
def test_categories_sum_to_the_total_at_every_tile_and_step(program: TileProgram) -> None:
    assert_reconciled(of(program))


@given(programs())
def test_peaks_are_those_of_the_curve(program: TileProgram) -> None:
    found = of(program)
    for ipu in range(program.ipus):
        live, peaks = found.live_bytes(ipu), found.step_peaks(ipu)
        assert (found.peak_bytes(ipu) == live.max(axis=0, initial=0)).all()
        assert (peaks.live_bytes == live.sum(axis=1)).all()
        total = live + found.always_live_bytes(ipu)
        assert (peaks.worst_tile_bytes == total.max(axis=1)).all()
        assert (total[np.arange(len(total)), peaks.worst_tile] == peaks.worst_tile_bytes).all()
        if len(live):
            assert (found.peak_positions(ipu) == live.argmax(axis=0)).all()  # the first of them


@pytest.mark.parametrize("broken", ["intervals", "footprint"])
def test_reconciliation_fails_when_one_pass_is_broken(broken: str) -> None:
    b = Builder()
    x = b.variable([4])
    found = of(b.program(b.compute(writes=[x]), b.compute(reads=[x])))
    assert_reconciled(found)
    if broken == "intervals":  # the curve is made while the bytes are read from another place
        curve = found.live_bytes(0)
        shifted = replace(found, intervals=(((1, 1),),))
        assert (shifted.live_bytes(0) != curve).any()
        table = replace(found.tables[0], rows=found.tables[0].rows + 4)
        wrong = replace(found, tables=(table,))
    else:
        more = {name: frozen(found.footprint.categories[name] + (name == "stack")) for name in FOOTPRINT_CATEGORIES}
        wrong = replace(found, footprint=Footprint(categories=more))
    with pytest.raises(AssertionError):
        assert_reconciled(wrong)


def test_a_full_ipu_takes_milliseconds() -> None:
    tiles, count, positions = 1472, 2000, 3000
    b = Builder(small_target(tiles))
    rng = np.random.default_rng(0)
    rows = [frozen(rng.integers(0, 999, tiles)) for _ in range(60)]  # variables share a few dozen mappings
    steps = [b.compute() for _ in range(positions)]
    for number in range(count):
        row = rows[int(rng.integers(len(rows)))]
        b.variables.append(
            Variable(id=number, name="", kind="temporary", dtype="", shape=(), bytes_per_tile=row, always_live=False)
        )
        first = int(rng.integers(positions - 100))
        steps[first] = replace(steps[first], writes=(*steps[first].writes, number))
        last = first + int(rng.integers(100))
        steps[last] = replace(steps[last], reads=(*steps[last].reads, number))
    program = b.program(*steps)
    code = footprint(program)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        found = liveness(program, code)
        found.step_peaks(0)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.15, seconds  # 0.07 s measured
