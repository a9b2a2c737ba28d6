"""Models in stages: assignments and their rules, and pipelines that give the numbers of the model in one piece."""

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.ipu.strategy.twins import Twins, assert_alike, configure, four_layers, in_scopes
from workbench import ipu
from workbench.ipu.ops.pipelining_ops import PipelineSchedule, RecomputationMode


@pytest.fixture
def two_ipus(twins: Twins) -> Twins:
    configure(2)
    return twins


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(each, id=each.name, marks=() if each is PipelineSchedule.Interleaved else pytest.mark.slow)
        for each in PipelineSchedule
    ],
)
def test_every_schedule_gives_the_numbers_of_one_piece(two_ipus: Twins, schedule: PipelineSchedule) -> None:
    ours = two_ipus.made(four_layers, here=True, steps_per_execution=8, optimizer=keras.optimizers.Adam(0.05))
    ours.set_pipeline_stage_assignment([0, 0, 1, 1])
    ours.set_pipelining_options(gradient_accumulation_steps_per_replica=4, pipeline_schedule=schedule)
    history = two_ipus.fitted(ours, batch_size=6)
    assert two_ipus.strategy.executables[0].graph.meta["stages"] == 2
    configure(1)
    theirs = two_ipus.made(four_layers, here=True, steps_per_execution=8, optimizer=keras.optimizers.Adam(0.05))
    theirs.set_gradient_accumulation_options(4)
    assert history == pytest.approx(two_ipus.fitted(theirs, batch_size=6), rel=1e-5)
    assert_alike(ours, theirs)
    assert_alike(ours.optimizer, theirs.optimizer)


def test_scopes_around_calls_make_stages(two_ipus: Twins) -> None:
    model = two_ipus.made(in_scopes, here=True, steps_per_execution=8)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
    assert [each.pipeline_stage for each in model.get_pipeline_stage_assignment()] == [0, 0, 1, 1]
    two_ipus.fitted(model, batch_size=6)
    evaluated = model.evaluate(two_ipus.x, two_ipus.y, batch_size=6, verbose=0)
    ahead = model.predict(two_ipus.x, batch_size=6, verbose=0)
    whole = model(two_ipus.x)
    np.testing.assert_allclose(ahead, whole, rtol=1e-5, atol=1e-6)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(two_ipus.y, whole)
    assert evaluated[0] == pytest.approx(float(loss), rel=1e-5)
    assert [run.graph.meta["stages"] for run in two_ipus.strategy.executables] == [2, 2, 2]


def masked() -> Any:
    """What keras.ops and operators of tensors make inside a scope, and the mask of an embedding."""
    inputs = keras.Input((6,))
    with ipu.keras.PipelineStage(0):
        words = keras.ops.cast(keras.ops.abs(inputs) * 3.0, "int32")
        x = keras.layers.Embedding(40, 5, mask_zero=True, name="words")(words)
    with ipu.keras.PipelineStage(1):
        x = keras.layers.GlobalAveragePooling1D(name="mean")(x)
        x = keras.layers.Dense(3, name="last")(keras.ops.sin(x) + x[:, :1])
    return keras.Model(inputs, x)


@pytest.mark.slow
def test_functions_operators_and_masks_are_on_the_stage_of_their_scope(two_ipus: Twins) -> None:
    ours = two_ipus.made(masked, here=True, steps_per_execution=8)
    stages = {each.layer.name: each.pipeline_stage for each in ours.get_pipeline_stage_assignment()}
    kinds = {type(each.layer).__name__ for each in ours.get_pipeline_stage_assignment()}
    assert {"Absolute", "Multiply", "Cast", "NotEqual", "Sin", "GetItem", "Add"} <= kinds
    assert [stages[name] for name in ("words", "mean", "last")] == [0, 1, 1]
    for each in ours.get_pipeline_stage_assignment():
        behind = type(each.layer).__name__ in ("Sin", "GetItem", "Add", "GlobalAveragePooling1D", "Dense")
        assert each.pipeline_stage == int(behind), each.layer.name
    ours.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    history = two_ipus.fitted(ours, batch_size=6)
    assert two_ipus.strategy.executables[0].graph.meta["stages"] == 2
    configure(1)
    theirs = two_ipus.made(masked, here=True, steps_per_execution=8)
    theirs.reset_pipeline_stage_assignment()
    theirs.set_gradient_accumulation_options(4)
    assert history == pytest.approx(two_ipus.fitted(theirs, batch_size=6), rel=1e-5)
    assert_alike(ours, theirs)


@pytest.mark.slow
def test_replicas_of_a_pipeline_add_up(two_ipus: Twins) -> None:
    models = []
    for ipus, steps in ((4, 4), (2, 8)):
        configure(ipus)
        model = two_ipus.made(in_scopes, here=True, steps_per_execution=8)
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=steps)
        two_ipus.fitted(model, batch_size=6)
        models.append(model)
    assert_alike(*models)
    assert two_ipus.strategy.executables[0].request.replicas == 2


OPTIMIZERS = {"SGD": keras.optimizers.SGD, "Adam": keras.optimizers.Adam}
OF_EXECUTIONS = ("launch", "finish")  # steps that meet the host around an execution


def named() -> Any:
    """Four layers whose names do not count on, so that two models of them have the same."""
    sizes = {"first": 5, "second": 4, "third": 6, "fourth": 3}
    layers = [keras.layers.Dense(size, activation="relu", name=name) for name, size in sizes.items()]
    return keras.Sequential([keras.Input((6,)), *layers], name="net")


def update_in_both_ways(twins: Twins, optimizer: str) -> tuple[Any, Any]:
    """Profiles of an update of a Keras model in stages and of a compile in stages, which both take the mean."""
    steps, made = 8, {"metrics": None, "steps_per_execution": 8}
    model = twins.made(named, here=True, optimizer=OPTIMIZERS[optimizer](0.1, name="optimizer"), **made)
    model.set_pipeline_stage_assignment([0, 0, 1, 1])
    model.set_pipelining_options(steps, experimental_normalize_gradients=True)
    twins.fitted(model, epochs=1, batch_size=6)
    other = twins.made(named, here=False, optimizer=OPTIMIZERS[optimizer](0.1, name="optimizer"), metrics=None)
    compiled = wb.compile(other, stages=[0, 0, 1, 1], gradient_accumulation_steps=steps, batch_size=6, mode="training")
    return twins.strategy.profile, compiled.profile


def by_what_it_is(table: Any, value: str, *keys: str) -> dict[Any, int]:
    """Sums of a column, with the names that feeds have in a compile."""
    named = table.fillna("")
    for feed, name in {"infeed/0": "x", "infeed/1": "y", "outfeed/0": "loss"}.items():
        named = named.assign(name=named["name"].str.replace(feed, name))
    return dict(named.groupby(["name", "layer", "ipu", *keys])[value].sum().items())


def difference(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
    found = {key: one.get(key, 0) - other.get(key, 0) for key in {*one, *other}}
    return {key: value for key, value in found.items() if value}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_update_has_the_steps_and_bytes_of_a_compile_in_stages(two_ipus: Twins, optimizer: str) -> None:
    """But for metrics, which are updated and written back each batch, and for the host's launch of an execution."""
    ours, theirs = update_in_both_ways(two_ipus, optimizer)
    assert [each.meta["pipeline"]["stages"] for each in (ours, theirs)] == [2, 2]
    keys = ("stage", "kind", "direction")
    more = difference(*(by_what_it_is(each.steps, "total_cycles", *keys) for each in (ours, theirs)))
    apart = {name for (name, layer, *_) in more if layer != "metrics" and name not in OF_EXECUTIONS}
    assert apart == {"stage1_forward/write_back/exchange", "sync"}  # of the loss's sum, and what comes before it
    assert {ipu for (name, _, ipu, *_), cycles in more.items() if name not in OF_EXECUTIONS} == {1}
    assert min(more.values()) > 0
    assert ours.total_cycles - theirs.total_cycles == sum(more.values())
    times = difference(*(by_what_it_is(each.steps, "times", *keys) for each in (ours, theirs)))
    assert times.keys() == more.keys()
    # The sum of the losses and how many they are: two numbers, made before they are written back.
    variables = difference(*(by_what_it_is(each.variables, "bytes", "kind") for each in (ours, theirs)))
    assert variables == {
        ("metrics/0/loss/total", "metrics", 1, "state"): 4,
        ("metrics/1/loss/count", "metrics", 1, "state"): 4,
        ("metrics/elementwise", "metrics", 1, "activation"): 8,
        ("metrics/elementwise/arranged", "metrics", 1, "temporary"): 8,
    }


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_update_has_the_memory_of_a_compile_in_stages(two_ipus: Twins, optimizer: str) -> None:
    """On every tile of the stage without metrics, but for the calls that launch and finish; and by what it is for."""
    ours, theirs = update_in_both_ways(two_ipus, optimizer)
    more = ours.tiles.set_index(["ipu", "tile"]) - theirs.tiles.set_index(["ipu", "tile"])
    first = more.loc[0].drop(columns="total_with_gaps_bytes")
    calls = 4 * len(OF_EXECUTIONS)
    assert {column: set(first[column]) for column in first if first[column].any()} == {
        "control_code": {calls},
        "always_live_bytes": {calls},
        "total_bytes": {calls},
    }
    whole = more.loc[1].sum()
    assert whole["state"] == 8
    held = ["parameter", "optimizer", "constant", "stash", "stream", "input", "gradient", "stack"]
    moved = ["host_exchange_code", "global_exchange_code", "host_exchange_packet_headers", "copy_descriptor"]
    assert not whole[[*held, *moved]].any()
    # Code of the metrics' vertices, and of two exchanges more, which every tile takes part in.
    assert 0 < whole["total_bytes"] < 0.03 * theirs.tiles.query("ipu == 1").total_bytes.sum()
    assert ours.max_tile_bytes == pytest.approx(theirs.max_tile_bytes, rel=0.01)


@pytest.mark.slow
def test_results_added_up_come_once_an_execution_though_asynchronous(two_ipus: Twins) -> None:
    called: list[int] = []
    hears = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: called.append(batch))
    model = two_ipus.made(in_scopes, here=True, steps_per_execution=8)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=8, accumulate_outfeed=True)
    model.set_asynchronous_callbacks(True)
    two_ipus.fitted(model, batch_size=6, callbacks=[hears])
    assert called == [7, 7]


def test_a_table_of_stages(two_ipus: Twins) -> None:
    lines: list[str] = []
    model = two_ipus.made(in_scopes, here=True)
    model.print_pipeline_stage_assignment_summary(print_fn=lines.append)
    assert lines[0] == f'Model: "{model.name}"'
    assert lines[2].split("  ")[0] == "Layer (type) (node index)"
    assert len(lines[1]) == 89
    assert lines[6].split() == ["second", "(Dense)", "(0)", "first", "0"]
    model.reset_pipeline_stage_assignment()
    assert [each.pipeline_stage for each in model.get_pipeline_stage_assignment()] == [None] * 4


def test_assignments_that_are_refused_change_nothing(two_ipus: Twins) -> None:
    model = two_ipus.made(four_layers, here=True)
    model.set_pipeline_stage_assignment([0, 1, 1, 1])
    for given, problem in (
        ((0, 1), "is a tuple"),
        ([0, 0, 1], "has 3 entries for 4 layers"),
        ([0, 0, 1, "1"], "holds '1'"),
        ([1, 1, 1, 1], "is on stage 1"),
        ([0, 2, 2, 2], "is on stage 2, and the one before on 0"),
        ([0, 1, 0, 1], "is on stage 0, and the one before on 1"),
        (model.get_pipeline_stage_assignment()[::-1], "stands where"),
    ):
        with pytest.raises(ValueError, match=problem):
            model.set_pipeline_stage_assignment(given)
    assert [each.pipeline_stage for each in model.get_pipeline_stage_assignment()] == [0, 1, 1, 1]
    functional = two_ipus.made(in_scopes, here=True)
    backward = functional.get_pipeline_stage_assignment()
    backward[0].pipeline_stage = 1
    with pytest.raises(ValueError, match="'second' is on stage 0 and takes what 'first' makes on 1"):
        functional.set_pipeline_stage_assignment(backward)
    backward[0].pipeline_stage = None
    with pytest.raises(ValueError, match="the stage of 'first' is None"):
        functional.set_pipeline_stage_assignment(backward)


def test_scopes_that_are_refused(twins: Twins) -> None:
    with pytest.raises(RuntimeError, match="outside the scope of an IPUStrategy"), ipu.keras.PipelineStage(0):
        pass
    with twins.strategy.scope():
        with pytest.raises(ValueError, match="is -1"), ipu.keras.PipelineStage(-1):
            pass
        with (
            pytest.raises(RuntimeError, match=r"PipelineStage\(1\) is opened inside PipelineStage\(0\)"),
            ipu.keras.PipelineStage(0),
            ipu.keras.PipelineStage(1),
        ):
            pass
        inputs = keras.Input((6,))
        with ipu.keras.PipelineStage(0):
            x = keras.layers.Dense(5)(inputs)
        stray = keras.Model(inputs, keras.layers.Dense(3, name="stray")(x))
        stray.compile(loss="mse")
    with pytest.raises(ValueError, match="the call of 'stray' is in no PipelineStage"):
        stray.fit(twins.x, twins.x[:, :3], verbose=0, batch_size=6)


def test_pipelines_that_cannot_run_say_why(twins: Twins) -> None:
    model = twins.made(four_layers, here=True, steps_per_execution=8)
    model.set_pipeline_stage_assignment([0, 0, 1, 1])
    configure(2)
    with pytest.raises(ValueError, match="nobody said how many batches an update has"):
        twins.fitted(model)
    configure(1)
    model.set_pipelining_options(4)
    with pytest.raises(ValueError, match="needs 2 IPUs, and /device:IPU:0 has 1"):
        twins.fitted(model)
    for arguments, kind, problem in (
        ({"device_mapping": (0, 1)}, ValueError, "device_mapping is"),
        ({"gradient_accumulation_count": 3}, ValueError, "To mend it: set gradient_accumulation_steps_per_replica"),
        ({"infeed_queue": 3}, ValueError, "'infeed_queue', which Keras sets"),
        ({"outfeed_loss": True}, ValueError, "'outfeed_loss', which does not fit a Keras model"),
        ({"speed": 3}, ValueError, "no argument 'speed'"),
        ({"accumulate_outfeed": 3}, ValueError, "accumulate_outfeed is 3"),
    ):
        with pytest.raises(kind, match=problem):
            model.set_pipelining_options(**arguments)
    assert model.get_config()["ipu_options"]["pipelining"]["steps"] == 4
    configure(2)

    class Own(keras.Sequential):
        def train_step(self, state: Any, data: Any) -> Any:
            return super().train_step(state, data)

    own = twins.made(lambda: Own([keras.layers.Dense(3)]), here=True, steps_per_execution=8)
    own.set_gradient_accumulation_options(4)
    with pytest.raises(RuntimeError, match="train_step of the model"):
        twins.fitted(own, batch_size=6)
    own.set_gradient_accumulation_options()
    configure(1)
    twins.fitted(own, batch_size=6)


def shared() -> Any:
    """A layer called four times, twice on each of two stages; its second branch is called before the first is."""
    inputs = keras.Input((6,))
    again = keras.layers.Dense(6, activation="tanh", name="shared")
    first = again(again(inputs))
    middle = keras.layers.Dense(6, name="middle")(first)
    left, right = again(middle), again(keras.layers.Dense(6, name="side")(first))
    return keras.Model(inputs, keras.layers.Dense(3, name="last")(keras.layers.Add(name="both")([left, right])))


def shared_over(twins: Twins, devices: list[int]) -> Any:
    """Calls 2 and 3 of the shared layer and what follows them on a second stage."""
    model = twins.made(shared, here=True, steps_per_execution=8)
    assignment = model.get_pipeline_stage_assignment()
    assert [each.node_index for each in assignment if each.layer.name == "shared"] == [0, 1, 2, 3]
    for each in assignment:
        again = each.layer.name == "shared" and each.node_index > 1
        each.pipeline_stage = int(again or each.layer.name in ("last", "both"))
    model.set_pipeline_stage_assignment(assignment)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4, device_mapping=devices)
    return model


def test_a_shared_layer_has_a_stage_for_each_call(two_ipus: Twins) -> None:
    with pytest.raises(ValueError, match="'shared' is called on stages 0 and 1, on IPUs 0 and 1"):
        two_ipus.fitted(shared_over(two_ipus, [0, 1]), batch_size=6)
    configure(1)
    ours = shared_over(two_ipus, [0, 0])
    history = two_ipus.fitted(ours, batch_size=6)
    theirs = two_ipus.made(shared, here=True, steps_per_execution=8)
    theirs.set_gradient_accumulation_options(4)
    assert history == pytest.approx(two_ipus.fitted(theirs, batch_size=6), rel=1e-5)
    assert_alike(ours, theirs)
    profile = two_ipus.strategy.executables[0].profile
    steps = profile.steps[(profile.steps.layer == "shared") & (profile.steps.direction == "forward")]
    assert set(steps.stage) == {0, 1}
    held = profile.variables[profile.variables.name == "shared/kernel/accumulator"]
    assert list(held.bytes) == [6 * 6 * 4]
    one_stage = two_ipus.made(four_layers, here=True, steps_per_execution=8)
    one_stage.set_pipeline_stage_assignment([0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"all layers of the model .* are on stage 0"):
        two_ipus.fitted(one_stage, batch_size=6)


MEMBERS = {
    "pipeline_schedule": (PipelineSchedule.Interleaved, "grouped", "Grouped, Interleaved, Sequential"),
    "recomputation_mode": (
        RecomputationMode.RecomputeThenBackpropagate,
        "",
        "Auto, RecomputeThenBackpropagate, RecomputeAndBackpropagateInterleaved",
    ),
}


@pytest.mark.parametrize("argument", MEMBERS)
def test_members_are_taken_by_name_and_refused_where_they_are_said(two_ipus: Twins, argument: str) -> None:
    right, wrong, names = MEMBERS[argument]
    model = two_ipus.made(four_layers, here=True, steps_per_execution=8)
    model.set_pipeline_stage_assignment([0, 0, 1, 1])
    model.set_pipelining_options(4, **{argument: right})
    before = model.get_config()
    model.set_pipelining_options(4, **{argument: right.name})
    assert model.get_config() == before
    with pytest.raises(TypeError, match=f"{argument} is '{wrong}'. Expected: a member of .*, or its name: {names}. To"):
        model.set_pipelining_options(2, **{argument: wrong})
    assert model.get_config() == before


def test_a_schedule_by_name_is_the_one_of_that_name(two_ipus: Twins) -> None:
    cycles = []
    for schedule in ("Sequential", PipelineSchedule.Sequential, PipelineSchedule.Grouped):
        model = two_ipus.made(four_layers, here=True, steps_per_execution=8)
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        model.set_pipelining_options(4, pipeline_schedule=schedule)
        model.fit(two_ipus.x[:48], two_ipus.y[:48], batch_size=6, verbose=0)
        cycles.append(two_ipus.strategy.profile.total_cycles)
    assert cycles[0] == cycles[1] != cycles[2]
