"""Pipelines of two and three stages: who runs what, what crosses, what waits, and whose values are read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.engine import reconcile
from tests.engine.passes import staged_models
from tests.engine.passes.owners import Owners
from tests.engine.passes.staged_models import BATCH, FEATURES, WIDTH, graph_of, pipeline
from tests.engine.unrolled import unrolled
from workbench.engine import pipeline_schedule as schedule_module
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.lower.pipeline import buffers as pipeline_buffers
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.options import Options
from workbench.engine.pipeline_schedule import stash_depth
from workbench.engine.program import (
    Call,
    GlobalExchange,
    Overlap,
    Program,
    Repeat,
    StreamCopy,
    TileProgram,
    Variable,
    children,
    leaves,
)
from workbench.engine.target import target
from workbench.errors import InputError

TWO: tuple[Any, ...] = (("b",), 8)
THREE: tuple[Any, ...] = (("a", "b"), 12)
ALL = [
    pytest.param((*size, schedule, mode, skip), id=f"{len(size[0]) + 1}-{schedule}-{mode}{'-skip' * skip}")
    for size in (TWO, THREE)
    for schedule in ("Grouped", "Interleaved", "Sequential")
    for mode in ("training", "inference")
    for skip in (False, True)
]
each_pipeline = pytest.mark.parametrize("arguments", ALL)
each_training = pytest.mark.parametrize("arguments", [case for case in ALL if case.values[0][3] == "training"])


def columns_text(program: TileProgram) -> str:
    """The control tree of the entry without the insides of bodies; links with their bytes."""

    def lines(node: Program, indent: str) -> list[str]:
        below = [line for child in children(node) for line in lines(child, indent + "  ")]
        if isinstance(node, GlobalExchange):
            return [f"{indent}link {node.ipu} -> {node.to_ipu} {node.size_bytes} B", *below]
        if isinstance(node, Call):
            links = [step for step in leaves(program.functions[node.function]) if isinstance(step, GlobalExchange)]
            if links:
                return [line for step in links for line in lines(step, indent)]
            number = "" if node.micro_batch is None else f" of {node.micro_batch}"
            return [f"{indent}{node.function}{number}", *below]
        if isinstance(node, Repeat):
            return [f"{indent}{node.times} times", *below]
        if isinstance(node, Overlap):
            return [f"{indent}at once ({node.phase}) {node.name}", *below]
        return [line.removeprefix("  ") for line in below]

    return "\n".join(lines(program.entry, ""))


def test_the_columns_of_a_small_pipeline(golden: Any) -> None:
    golden("passes/pipeline.txt", columns_text(pipeline(("b",), 8).program))


SHARED = [
    pytest.param((*THREE, schedule, mode, skip, devices), id=f"{schedule}-{mode}{'-skip' * skip}-{devices}")
    for schedule in ("Grouped", "Interleaved", "Sequential")
    for mode in ("training", "inference")
    for skip in (False, True)
    for devices in ((0, 1, 0), (0, 0, 1), (1, 0, 0), (2, 0, 1), (0, 0, 0))
    if schedule != "Interleaved" or mode == "inference" or len(set(devices)) == 3
]


@pytest.mark.parametrize("arguments", SHARED)
def test_stages_that_share_ipus_read_values_of_their_own_micro_batch(arguments: Any) -> None:
    compiled = pipeline(*arguments)
    program, devices = compiled.program, arguments[-1]
    Owners(program).run(program.entry)
    for name, ipu in (("a/kernel", devices[0]), ("b/kernel", devices[1]), ("out/kernel", devices[2])):
        assert {v.ipu for v in program.variables if v.name.startswith(name)} == {ipu}
    for spent in compiled.trace.cycle_breakdown:
        assert sum(spent.values()) == compiled.trace.total_cycles
    if set(devices) == {0}:
        assert crossings(compiled) == []
        assert not any(compiled.trace.cycle_breakdown[0][cause] for cause in ("idle_fill", "idle_drain"))


def test_a_weight_of_two_stages_on_one_ipu_stands_once_and_gathers_both_gradients() -> None:
    program = staged_models.tied((0, 1, 0)).program
    Owners(program).run(program.entry)
    kernels = [v for v in program.variables if v.name == "a/kernel"]
    sums = [v for v in program.variables if v.name == "a/kernel/accumulator"]
    assert [(v.ipu, v.always_live) for v in kernels + sums] == [(0, True), (0, True)]
    owners = Owners(program)
    writers = {
        name
        for name, body in program.functions.items()
        if name.startswith("stage") and any(sums[0].id in step.writes for step in owners.steps(body))
    }
    assert writers == {"stage0_backward", "stage2_backward", "stage0_update"}


def test_a_weight_of_two_ipus_is_an_error_that_names_its_layer() -> None:
    with pytest.raises(InputError) as caught:
        staged_models.tied((0, 1, 2))
    assert str(caught.value) == (
        "the variable 'a/kernel' of the layer 'a' is used by stage 0 on IPU 0, stage 2 on IPU 2. Expected: all stages "
        "that use a variable on one IPU. To mend it: move the layers that share it to one stage, or map their stages "
        "to one IPU by device_mapping."
    )


def test_a_map_of_another_length_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^device_mapping has 2 entries for 3 stages"):
        pipeline(*THREE, "Grouped", "training", False, (0, 1))


def stage_blocks(compiled: Compiled, ipu: int) -> list[tuple[str, int]]:
    """(direction, micro-batch) of the forward and backward passes an IPU executes, each once, in order."""
    rows = unrolled(compiled.trace, ipu)
    found = [
        (row.direction, row.micro_batch)
        for row in rows
        if row.micro_batch is not None and row.direction in ("forward", "backward") and row.layer
    ]
    return list(dict.fromkeys((direction, number) for direction, number in found if number is not None))


@each_pipeline
def test_every_stage_runs_every_micro_batch_once_in_each_direction(arguments: Any) -> None:
    compiled = pipeline(*arguments)
    cuts, steps, _, mode, _ = arguments
    for ipu in range(len(cuts) + 1):
        blocks = stage_blocks(compiled, ipu)
        assert [number for direction, number in blocks if direction == "forward"] == list(range(steps))
        backward = [number for direction, number in blocks if direction == "backward"]
        assert backward == (list(range(steps)) if mode == "training" else [])


@each_pipeline
def test_blocks_say_their_stage(arguments: Any) -> None:
    for row in unrolled(pipeline(*arguments).trace):
        if row.step >= 0 and row.cause in ("compute", "exchange", "sync"):
            assert row.stage == row.ipu


def crossings(compiled: Compiled) -> list[GlobalExchange]:
    return [step for step in compiled.program.steps if isinstance(step, GlobalExchange)]


@each_pipeline
def test_copies_are_between_neighbours(arguments: Any) -> None:
    compiled = pipeline(*arguments)
    assert {abs(step.ipu - step.to_ipu) for step in crossings(compiled)} == {1}


def crossed_bytes(compiled: Compiled) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for step in crossings(compiled):
        found[step.ipu, step.to_ipu] += step.size_bytes * compiled.trace.executions[step.id]
    return found


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
def test_an_activation_goes_up_and_its_gradient_comes_down_for_each_micro_batch(schedule: str) -> None:
    value = BATCH * WIDTH * 4
    plain = crossed_bytes(pipeline(*THREE, schedule))
    assert plain == dict.fromkeys([(0, 1), (1, 2), (2, 1), (1, 0)], 12 * value)
    # the first layer's output goes on to the third stage, and its second gradient comes back over both links
    skipping = crossed_bytes(pipeline(*THREE, schedule, "training", True))
    assert skipping == {(0, 1): 12 * value, (1, 2): 24 * value, (2, 1): 24 * value, (1, 0): 24 * value}
    assert crossed_bytes(pipeline(*THREE, schedule, "inference")) == {(0, 1): 12 * value, (1, 2): 12 * value}


def named(compiled: Compiled, ending: str) -> list[Variable]:
    return [variable for variable in compiled.program.variables if variable.name.endswith(ending)]


def test_fifo_bytes_are_depth_times_residual_bytes() -> None:
    """Per stage by hand: its input, and the ReLU mask of its layer, whose output is not kept."""
    compiled = pipeline(*THREE)
    masks = BATCH * WIDTH
    residuals = [BATCH * FEATURES * 4 + masks, BATCH * WIDTH * 4 + masks]
    for stage, depth in ((0, 4), (1, 2)):
        assert depth == stash_depth("Grouped", 3, stage)
        held = sum(v.size_bytes for v in named(compiled, "/stash") if v.ipu == stage)
        left = sum(v.size_bytes for v in named(compiled, "/unstashed") if v.ipu == stage)
        assert (held, left) == (depth * residuals[stage], residuals[stage])
    # the last stage's backward pass is a column later: what its neighbour sends meanwhile must not reach it
    assert sum(v.size_bytes for v in named(compiled, "/stash") if v.ipu == 2) == BATCH * WIDTH * 4


def test_what_entered_a_fifo_last_is_not_kept_until_it_is_empty() -> None:
    """Behind the last micro-batch FIFOs are only read; what a stage makes is live from its forward call to its turn."""
    program = pipeline(*THREE).program
    names = {step.id: step.name for step in program.steps}
    found = lifetimes(program)
    for stage in (0, 1):
        timeline = [names[step] for step in found.timelines[stage]]
        turns = {name: [at for at, each in enumerate(timeline) if each == name] for name in ("fifo/push", "fifo/pop")}
        (push,) = [step for step in program.steps if step.name == "fifo/push" and step.ipu == stage]
        entering = [v for v in push.reads if program.variables[v].function == f"stage{stage}_forward"]
        assert entering
        assert turns["fifo/push"][-1] < turns["fifo/pop"][-1]
        for spans in (found.intervals[variable] for variable in entering):
            assert [last for _, last in spans] == turns["fifo/push"]


def test_nothing_is_stashed_in_sequence_or_in_inference() -> None:
    for arguments in ((*THREE, "Sequential"), (*THREE, "Grouped", "inference")):
        assert not [v for v in pipeline(*arguments).program.variables if v.kind == "stash"]


@each_training
def test_weights_slots_and_accumulators_stand_once(arguments: Any) -> None:
    compiled = pipeline(*arguments)
    counted = Counter(v.name for v in compiled.program.variables if v.kind in ("parameter", "optimizer"))
    scalars = {name for name in counted if name.endswith(("/iteration", "/learning_rate"))}
    assert {count for name, count in counted.items() if name not in scalars} == {1}
    for layer, shape in (("a", (FEATURES, WIDTH)), ("b", (WIDTH, WIDTH)), ("c", (WIDTH, WIDTH)), ("out", (WIDTH, 10))):
        kernels = [v for v in compiled.program.variables if f"{layer}/kernel" in v.name.replace("_", "/")]
        big = [v for v in kernels if v.always_live]
        assert [(v.shape, v.size_bytes) for v in big] == [(shape, shape[0] * shape[1] * 4)] * 3  # with momentum, sum
        assert len({v.ipu for v in big}) == 1


@each_training
def test_accumulators_are_added_to_and_zeroed_where_they_are(arguments: Any) -> None:
    program = pipeline(*arguments).program
    assert not [step.name for step in program.steps if "write_back" in step.name]
    buffers = {v.id for v in program.variables if v.name.endswith("/accumulator")}
    assert len(buffers) == 8
    for name, body in program.functions.items():
        written = {v for step in leaves(body) for v in step.writes} & buffers
        read = {v for step in leaves(body) for v in step.reads} & buffers
        if name.endswith("_backward"):
            assert read == written
        elif name.endswith("_update"):
            assert read == written
            last = {v: step for step in leaves(body) for v in step.writes if v in buffers}
            assert all(step.name.endswith("/broadcast_in_dim") for step in last.values())
        else:
            assert not read
            assert not written


@each_pipeline
def test_waiting_and_working_is_all_the_time_there_is(arguments: Any) -> None:
    """The breakdown, and apart from it the blocks end to end."""
    trace = pipeline(*arguments).trace
    for ipu, spent in enumerate(trace.cycle_breakdown):
        assert sum(spent.values()) == trace.total_cycles
        rows = unrolled(trace, ipu)
        assert [row.cycles_from for row in rows] == [0, *(row.cycles_to for row in rows[:-1])]
        lengths: Counter[str] = Counter()
        for row in rows:
            lengths[row.cause] += row.cycles_to - row.cycles_from
        assert lengths == Counter({cause: cycles for cause, cycles in spent.items() if cycles})


@each_pipeline
def test_data_comes_and_goes_once_for_each_micro_batch(arguments: Any) -> None:
    compiled = pipeline(*arguments)
    copies = Counter(
        (step.name, step.ipu, compiled.trace.executions[step.id])
        for step in compiled.program.steps
        if isinstance(step, StreamCopy)
    )
    last, steps = len(arguments[0]), arguments[1]
    training = {("x/from_host", 0, steps): 1, ("y/from_host", last, steps): 1, ("loss/to_host", last, steps): 1}
    inference = {("x/from_host", 0, steps): 1, ("output/to_host", last, steps): 1}
    assert copies == (training if arguments[3] == "training" else inference)


# -- whose values are they? ----------------------------------------------------------------------------------


@each_pipeline
def test_every_pass_reads_values_of_its_own_micro_batch(arguments: Any) -> None:
    program = pipeline(*arguments).program
    Owners(program).run(program.entry)


@each_pipeline
def test_everything_reconciles(arguments: Any) -> None:
    reconcile.reconciles(pipeline(*arguments))


@pytest.mark.parametrize("shallow", ["depth", "received"])
def test_a_fifo_left_out_is_noticed(shallow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shallow == "depth":
        wrong = staged_depth_less_one
        monkeypatch.setattr(pipeline_buffers, "stash_depth", wrong)
    else:
        monkeypatch.setattr(pipeline_buffers.Buffers, "stash", lambda self, stage, reader: None)
    program = compile_graph(graph_of(*THREE), target("ipu2", tiles_per_ipu=8), Options(), ipus=3).program
    monkeypatch.undo()
    owners = Owners(program)
    if shallow == "depth":
        owners.depths = {name: max(0, depth - 1) for name, depth in owners.depths.items()}
    with pytest.raises(AssertionError, match=r"backward of \d+ reads"):
        owners.run(program.entry)


def staged_depth_less_one(schedule: str, stages: int, stage: int) -> int:
    return max(0, schedule_module.stash_depth(schedule, stages, stage) - 1)


def test_a_wrong_number_of_micro_batches_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"^gradient_accumulation_steps is 3, for 2 stages"):
        pipeline(("b",), 3)


def test_the_models_are_what_the_numbers_above_say() -> None:
    built = staged_models.model(skip=False)
    assert [tuple(weight.shape) for weight in built.weights[::2]] == [(64, 32), (32, 32), (32, 32), (32, 10)]
