"""What options of a model do to its program: launches, sums, masks, groups, recomputation."""

from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, configure, four_layers, functional
from workbench import ipu
from workbench.ipu.config import IPUConfig
from workbench.ipu.ipu_strategy import IPUStrategy
from workbench.ipu.ops.pipelining_ops import RecomputationMode


def shares(profile: Any, batches: int) -> tuple[float, float, float]:
    """Cycles of a batch; the part of them in which the host is met or copied to; bytes a batch copies."""
    steps = profile.steps
    met = steps.name.isin(["launch", "finish"]) | (steps.kind == "StreamCopy")
    copied = ((steps.bytes_sent + steps.bytes_received) * steps.times)[steps.kind == "StreamCopy"].sum()
    return profile.total_cycles / batches, steps[met].total_cycles.sum() / profile.total_cycles, copied / batches


def test_more_steps_of_an_execution_share_its_launch_and_copy_the_same(twins: Twins) -> None:
    counts = (1, 2, 6)
    for steps in counts:
        twins.fitted(twins.made(functional, here=True, steps_per_execution=steps), epochs=1)
    profiles = [each.profile for each in twins.strategy.executables]
    for profile in profiles:
        met = profile.steps[profile.steps.name.isin(["launch", "finish"])]
        assert list(met.times) == [1, 1]
        assert list(met.cycles) == [profile.target["global_sync_cycles"]] * 2
    cycles, share, copied = zip(*map(shares, profiles, counts), strict=True)
    assert cycles[0] > cycles[1] > cycles[2]
    assert share[0] > share[1] > share[2]
    # 8 samples of 6 float32 and a label, the loss and the accuracy.
    assert copied == (8 * 6 * 4 + 8 * 4 + 4 + 4,) * 3


@pytest.mark.parametrize("queues", [{}, {"depth": 7}, {"packets": True}], ids=["as they are", "deep", "in packets"])
def test_a_pipeline_runs_all_updates_of_an_execution_in_one_program(twins: Twins, queues: dict[str, Any]) -> None:
    configure(2)
    for steps in (8, 24):
        model = twins.made(four_layers, here=True, steps_per_execution=steps)
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
        if queues:
            asked = {"depth": "prefetch_depth", "packets": "optimise_latency"}
            model.set_infeed_queue_options(**{asked[name]: value for name, value in queues.items()})
            asked["depth"] = "buffer_depth"
            model.set_outfeed_queue_options(**{asked[name]: value for name, value in queues.items()})
        twins.fitted(model, epochs=1, batch_size=2)
    one, three = (each.profile for each in twins.strategy.executables)
    assert three.meta["pipeline"] == {**one.meta["pipeline"], "updates": 3}
    assert (one.meta["samples_per_call"], three.meta["samples_per_call"]) == (16, 48)
    met = 2 * one.target["global_sync_cycles"]
    # An update is one turn of a loop; only what waits for the host may be shared out otherwise.
    assert three.total_cycles - met == pytest.approx(3 * (one.total_cycles - met), rel=0.01)
    assert three.max_tile_bytes == pytest.approx(one.max_tile_bytes, rel=0.1)
    copies = three.steps[three.steps.kind == "StreamCopy"]
    assert set(copies.times) == {24}
    assert copies.name.str.contains("infeed/0").sum() == 1
    packed = three.steps.name.str.contains("packets")
    assert packed.any() == ("packets" in queues)
    held = {step.ahead for step in twins.strategy.executables[1].program.steps if hasattr(step, "ahead")}
    assert held == {queues.get("depth", 3)}
    np.testing.assert_array_less(0, copies.total_cycles)


def trained(layers: list[Any], stages: list[int] | None = None, **options: Any) -> Any:
    """The profile of one execution of a Sequential model of these layers, of inputs of 64, on 16 tiles an IPU."""
    config = IPUConfig()
    config.auto_select_ipus = 2 if stages else 1
    config.ipu_model.tiles_per_ipu = 16
    config.allow_recompute = bool(stages)
    config.configure_ipu_system()
    strategy, batches = IPUStrategy(), 4 if stages else 1
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((64,)), *layers])
        model.compile("sgd", "mse", steps_per_execution=batches)
    if stages:
        model.set_pipeline_stage_assignment(stages)
        model.set_pipelining_options(batches, **options)
    x, y = np.zeros((256 * batches, 64), "float32"), np.zeros((256 * batches, 4), "float32")
    model.fit(x, y, batch_size=256, verbose=0)
    return strategy.profile


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_system")
def test_dropout_draws_its_mask_again_and_keeps_none() -> None:
    def profile(kind: Any) -> Any:
        layers = [
            *(keras.layers.Dense(64, "tanh"), kind(0.5, name="first")),
            *(keras.layers.Dense(64, "tanh"), kind(0.5, name="second")),
            *(keras.layers.Dense(512, "tanh"), keras.layers.Dense(4)),  # the widest last: the peak is at the turn
        ]
        return trained(layers)

    ours, theirs = profile(ipu.keras.layers.Dropout), profile(keras.layers.Dropout)
    held, draws = [], []
    for each in (ours, theirs):
        steps, variables = each.steps, each.variables
        turn = int(steps[steps.direction == "backward"].id.min())
        assert steps[steps.id == each.peak.step].direction.item() == "backward"
        assert {"first", "second"}.isdisjoint(steps[steps.id == each.peak.step].layer)
        across = variables[(variables.first_step < turn) & (variables.last_step >= turn)]
        held.append(int(across[(across["dtype"] == "bool") & (across["shape"] == "(256, 64)")].bytes.sum()))
        draws.append(int((steps.name.str.endswith("/random_bits") & (steps.kind == "OnTileExecute")).sum()))
    assert held == [0, 2 * 256 * 64]
    assert draws == [4, 2]
    fallen = theirs.tiles.total_bytes.sum() - ours.tiles.total_bytes.sum()
    assert fallen >= held[1]


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_system")
@pytest.mark.parametrize("mode", ["RecomputeAndBackpropagateInterleaved", "RecomputeThenBackpropagate"])
def test_a_checkpoint_lowers_the_peak_where_passes_are_interleaved_alone(mode: str) -> None:
    def profile(marked: bool) -> Any:
        deep = [keras.layers.Dense(64, "tanh") for _ in range(8)]
        if marked:
            deep.insert(4, ipu.keras.layers.RecomputationCheckpoint())
        layers = [*deep, keras.layers.Dense(4)]
        stages = [0] * len(deep) + [1]
        return trained(layers, stages, recomputation_mode=RecomputationMode[mode])

    plain, marked = (int(profile(each).tiles.query("ipu == 0").total_bytes.max()) for each in (False, True))
    assert marked < plain if mode == "RecomputeAndBackpropagateInterleaved" else marked == plain


def test_both_states_of_a_loop_may_be_checkpoints(fresh_system: None) -> None:
    """Two results of one loop, each kept by a name of its own: what is made again gives the numbers of what is kept."""
    x = np.linspace(-1.0, 1.0, 96, dtype=np.float32).reshape(8, 4, 3)
    losses = []
    for again in (False, True):
        config = IPUConfig()
        config.auto_select_ipus, config.ipu_model.tiles_per_ipu, config.allow_recompute = 2, 16, again
        config.configure_ipu_system()
        keras.utils.set_random_seed(3)
        strategy = IPUStrategy()
        with strategy.scope():
            given = keras.Input((4, 3))
            with ipu.keras.PipelineStage(0):
                *_, hidden, cell = keras.layers.LSTM(5, return_state=True)(given)
                states = ipu.keras.layers.RecomputationCheckpoint()([hidden, cell])
                then = keras.layers.LSTM(5)(given, initial_state=states)
            with ipu.keras.PipelineStage(1):
                model = keras.Model(given, keras.layers.Dense(1)(then))
            model.set_pipelining_options(
                gradient_accumulation_steps_per_replica=4,
                recomputation_mode=RecomputationMode.RecomputeAndBackpropagateInterleaved,
            )
            model.compile(keras.optimizers.SGD(0.5), "mse", steps_per_execution=4)
            fitted = model.fit(x, x[:, 0, :1], batch_size=2, epochs=2, shuffle=False, verbose=0)
        losses.append(fitted.history["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
