"""Loops and branches on four tiles, worked out by hand."""

from __future__ import annotations

import pytest

from tests.engine.ops.lowered import F32, body, compiled, exposed, single, tree
from workbench.engine.graph import Function, GraphBuilder
from workbench.engine.lower.in_place import InPlace, find_in_place, verify_in_place
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.program import DoExchange, If, OnTileExecute, Repeat, children
from workbench.errors import VerificationError

VECTOR = ((8,), F32)
STACK = ((5, 8), F32)


def _step() -> Function:
    """Carry and slice to their sum and its negative."""
    return body("step", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), ("neg", (2,), VECTOR), results=(2, 3))


def test_a_scan_slices_carries_and_stacks() -> None:
    types = [VECTOR, STACK]
    case = single("scan", types, types, bodies=(_step(),), times=5, num_carry=1, num_consts=0, reverse=False)
    assert tree(case.lowered.program.entry) == ["Sequence", "Repeat", "Sequence"]
    (loop,) = [one for one in children(case.lowered.program.entry) if isinstance(one, Repeat)]
    assert (loop.times, loop.unknown_times) == (5, False)
    arguments, _, _ = case.vertex("popops::DynamicSlice1D")
    assert (arguments["num_base_elements"], arguments["region_size"]) == (5, 2)  # a row's 8 elements over 4 tiles
    case.vertex("popops::DynamicUpdateSlice1D")
    case.vertex("popops::ForLoopCounter")
    assert case.received("counter/exchange") == [0, 4, 4, 4]  # once an iteration, from tile 0
    # The new carry is made where the carry is: nothing is copied at the end of an iteration.
    assert not [step.name for step in case.computes if step.name.endswith("carry/copy")]
    assert case.vertices("add")[0][0] == "popops::BinaryOp1DInPlace"
    assert exposed(case) == []


def test_a_loop_costs_its_body_times_its_count() -> None:
    types = [VECTOR, STACK]
    made = [
        single("scan", types, types, bodies=(_step(),), times=count, num_carry=1, num_consts=0, reverse=False)
        for count in (5, 5000)
    ]
    inside = next(one for one in children(made[0].lowered.program.entry) if isinstance(one, Repeat)).body
    cycles = sum(made[0].trace.steps[step.id].cycles for step in children(inside))  # type: ignore[union-attr]
    assert made[1].trace.total_cycles - made[0].trace.total_cycles == cycles * 4995


def test_steps_are_numbered_as_they_stand() -> None:
    """The clearing of a stack is emitted after the body, whose entry decides its layout, but stands before it."""
    types = [VECTOR, STACK]
    case = single("scan", types, types, bodies=(_step(),), times=5, num_carry=1, num_consts=0, reverse=False)
    numbers = [int(step) for step in lifetimes(case.lowered.program).timelines[0]]
    assert numbers == sorted(numbers)


def test_carries_that_change_places_are_saved_first() -> None:
    swap = body("swap", [VECTOR, VECTOR], results=(1, 0))
    case = single("scan", [VECTOR] * 2, [VECTOR] * 2, bodies=(swap,), times=3, num_carry=2, num_consts=0)
    moves = [step for step in case.lowered.program.steps if isinstance(step, DoExchange | OnTileExecute)]
    names = [step.name.rsplit("/", 2)[-2] for step in moves]
    assert names == ["start", "start", "save", "save", "carry", "carry"]
    assert len({name for step in moves[2:4] for name in step.writes}) == 2  # a copy each
    assert moves[4].reads + moves[5].reads == moves[2].writes + moves[3].writes


def test_a_constant_of_a_loop_is_shared() -> None:
    add = body("add", [VECTOR, VECTOR], ("add", (1, 0), VECTOR), results=(2,))
    case = single("scan", [VECTOR] * 2, [VECTOR], bodies=(add,), times=3, num_carry=1, num_consts=1)
    assert [step.reads for step in case.computes if step.name.endswith("start/copy")] == [(1,)]  # the carry alone
    # Every iteration reads the copied carry and the constant where it is: both inputs are on the tile that one fits.
    assert [step.reads for step in case.computes if step.name.endswith("/add")] == [(2, 0)]
    assert not any(0 in step.reads for step in case.exchanges)


def _while(**attributes: object) -> Repeat:
    test = body("test", [VECTOR], ("reduce_sum", (0,), ((), F32), {"axes": (0,)}), results=(1,))
    twice = body("twice", [VECTOR], ("add", (0, 0), VECTOR), results=(1,))
    case = single("while", [VECTOR], [VECTOR], bodies=(test, twice), cond_consts=0, body_consts=0, **attributes)
    assert case.vertices("reduce_sum")
    (loop,) = [one for one in children(case.lowered.program.entry) if isinstance(one, Repeat)]
    return loop


def test_a_while_of_unknown_count_runs_once_and_says_so() -> None:
    known = _while(times=7)
    assert (known.times, known.unknown_times) == (7, False)
    unknown = _while(unknown_trip_count=True)
    assert (unknown.times, unknown.unknown_times) == (1, True)


def test_branches_write_the_same_memory() -> None:
    arms = tuple(body(op, [VECTOR], (op, (0,), VECTOR), results=(1,)) for op in ("neg", "exp"))
    case = single("cond", [((), "int32"), VECTOR], [VECTOR], bodies=arms)
    (choice,) = [one for one in children(case.lowered.program.entry) if isinstance(one, If)]
    written = [{name for step in children(arm) for name in step.writes} for arm in choice.arms]  # type: ignore[union-attr]
    assert written[0] & written[1]
    assert exposed(case) == []


def _guarded_update() -> tuple[GraphBuilder, tuple[Function, ...]]:
    """A parameter that is updated in one branch and left as it is in the other, as a loss scale optimizer does."""
    builder = GraphBuilder("main")
    weight, gradient, finite = builder.param(*VECTOR), builder.param(*VECTOR), builder.param((), "int32")
    builder.node("cond", (finite, weight, gradient), (VECTOR,), calls=("skip", "apply"))
    skip = body("skip", [VECTOR, VECTOR], results=(0,))
    apply = body("apply", [VECTOR, VECTOR], ("sub", (0, 1), VECTOR), results=(2,))
    return builder, (skip, apply)


def test_a_parameter_is_updated_in_place_through_a_branch() -> None:
    builder, arms = _guarded_update()
    case = compiled(builder, builder.nodes[0].results, roles=["parameter"], updates={0: 0}, bodies=arms)
    assert case.vertices("sub")[0][0] == "popops::BinaryOp1DInPlace"
    assert [name for name in case.names() if "cond" in name or name.endswith("sub")] == []
    assert not any("write_back" in step.name for step in case.lowered.program.steps)


def test_a_branch_may_not_overwrite_what_is_read_afterwards() -> None:
    builder, arms = _guarded_update()
    (result,) = builder.nodes[0].results
    (kept,) = builder.node("add", (builder.params[0], result), (VECTOR,))
    case = compiled(builder, [kept], roles=["parameter"], bodies=arms)
    assert case.vertices("sub")[0][0] == "popops::BinaryOp1D"


def test_the_verifier_finds_a_read_of_overwritten_memory() -> None:
    builder, arms = _guarded_update()
    (result,) = builder.nodes[0].results
    builder.node("add", (builder.params[0], result), (VECTOR,))
    graph = compiled(builder, [result], roles=["parameter"], bodies=arms).graph
    wrong = InPlace(reuse={result: builder.params[0]}, updated=frozenset())
    verify_in_place(graph, find_in_place(graph))
    with pytest.raises(VerificationError, match="overwrote"):
        verify_in_place(graph, wrong)


def test_a_call_of_several_times_is_a_loop() -> None:
    add = body("add", [VECTOR, VECTOR], ("add", (0, 1), VECTOR), results=(2,))
    builder = GraphBuilder("outer")
    values = (builder.param(*VECTOR), builder.param(*VECTOR))
    made = builder.node("call", values, (VECTOR,), calls=("add",), times=4)
    outer = builder.function(made)
    case = single("scan", [VECTOR] * 2, [VECTOR], bodies=(outer, add), times=3, num_carry=1, num_consts=1)
    assert tree(case.lowered.program.entry).count("Repeat") == 2
