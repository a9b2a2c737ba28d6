"""Custom training loops: a `tf.function` that a strategy runs is one program on its IPU, with the numbers of Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, sequential
from workbench import ipu, tf
from workbench.ipu.ipu_strategy import IPUStrategy

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def training_step(features: Any, labels: Any, model: Any, optimizer: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = LOSS(labels, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def training_loop(steps: Any, iterator: Any, model: Any, optimizer: Any, mean: Any) -> Any:
    for _ in tf.range(steps):
        features, labels = next(iterator)
        mean.update_state(training_step(features, labels, model, optimizer))
    return mean.result()


def seeded() -> Any:
    keras.utils.set_random_seed(11)
    return sequential()


def batches(twins: Twins) -> Any:
    return tf.data.Dataset.from_tensor_slices((twins.x, twins.y)).batch(8, drop_remainder=True).repeat()


def by_keras(twins: Twins, optimizer: Any, steps: int) -> tuple[Any, list[float]]:
    """A model that plain Keras trained on the same batches, and its losses."""
    model = seeded()
    model.compile(optimizer, loss=LOSS)
    data = iter(batches(twins))
    return model, [float(model.train_on_batch(*next(data))) for _ in range(steps)]


@pytest.mark.parametrize("optimizer", ["SGD", pytest.param("Adam", marks=pytest.mark.slow)])
def test_ten_steps_one_by_one_or_in_one_call_are_those_of_keras(twins: Twins, optimizer: str) -> None:
    plain, expected = by_keras(twins, getattr(keras.optimizers, optimizer)(0.1), 10)
    strategy = twins.strategy
    with strategy.scope():
        single, whole = seeded(), seeded()
        optimizers = [getattr(keras.optimizers, optimizer)(0.1) for _ in range(2)]
        mean = keras.metrics.Mean()
        data, losses = batches(twins), []
        for (x, y), _ in zip(data, range(10), strict=False):
            losses.append(float(strategy.run(training_step, args=[x, y, single, optimizers[0]])))
        average = strategy.run(training_loop, args=(np.int32(10), iter(data), whole, optimizers[1], mean))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert float(average) == pytest.approx(np.mean(expected), rel=1e-5)
    for ours, theirs in ((single, plain), (whole, plain)):
        for mine, other in zip(ours.weights, theirs.weights, strict=True):
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-5, atol=1e-7)
    assert [int(each.iterations) for each in optimizers] == [10, 10]
    assert [each.graph.name for each in strategy.executables] == ["training_step", "training_loop"]
    assert strategy.profile.fits
    assert "batch size" not in str(strategy.profile)  # what of its arguments are samples, nobody knows


def test_a_program_is_compiled_once_and_holds_its_loop(twins: Twins) -> None:
    weight = tf.Variable(np.ones((6, 6), np.float32))

    @tf.function
    def turned(x: Any, steps: Any) -> Any:
        for _ in tf.range(steps):
            if tf.reduce_max(x) > 4.0:  # noqa: SIM108
                x = x * 0.5
            else:
                x = tf.matmul(x, weight)
        weight.assign_add(tf.ones_like(weight))
        return x

    x, strategy = np.eye(6, dtype=np.float32), twins.strategy
    made = [strategy.run(turned, (x, np.int32(steps))) for steps in (0, 1, 2, 5)]
    assert len(strategy.executables) == 1
    np.testing.assert_array_equal(made[0], x)
    np.testing.assert_array_equal(made[1], np.full((6, 6), 2.0))
    np.testing.assert_array_equal(made[2], np.full((6, 6), 54.0))  # by threes: 3, then 6 times 3 times 3
    np.testing.assert_array_equal(made[3], np.full((6, 6), 12.0))  # by fours: 4, 96, and halved thrice
    np.testing.assert_array_equal(weight.numpy(), np.full((6, 6), 5.0))
    kinds = {node.op for function in strategy.executables[0].graph.functions.values() for node in function.nodes}
    assert {"while", "cond"} <= kinds


def test_a_variable_that_a_loop_and_then_a_branch_changes(twins: Twins) -> None:
    held = tf.Variable(1.0)

    @tf.function
    def changed(steps: Any) -> Any:
        for _ in tf.range(steps):
            held.assign_add(2.0)
        if held > 6.0:
            held.assign(held * 2.0)
        return held

    assert [float(twins.strategy.run(changed, (np.int32(steps),))) for steps in (3, 0, 1)] == [14, 28, 60]


def test_values_of_outfeeds_and_steps_of_one_program(twins: Twins) -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    data = iter(tf.data.Dataset.from_tensor_slices(np.arange(8, dtype=np.float32)))

    @tf.function
    def squares() -> None:
        for _ in tf.range(4):
            element = next(data)
            if element > 1.0:
                outfeed.enqueue(element * element)

    twins.strategy.run(squares)
    twins.strategy.run(squares)
    np.testing.assert_array_equal(outfeed.dequeue(), [each * each for each in range(2, 8)])


def test_gradients_are_summed_over_replicas_and_each_takes_batches_in_turn() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus, config.ipu_model.tiles_per_ipu = 2, 4
    config.configure_ipu_system()
    strategy, variable = IPUStrategy(), keras.Variable([1.0])
    optimizer = keras.optimizers.SGD(1.0)
    data = iter(tf.data.Dataset.from_tensor_slices(np.array([1.0, 10.0, 100.0, 1000.0], np.float32)))

    @tf.function
    def step() -> Any:
        x = next(data)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable * x)
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, loss)

    assert float(strategy.run(step)) == pytest.approx(5.5)
    assert float(variable.numpy()[0]) == 1 - 11
    strategy.run(step)
    assert float(variable.numpy()[0]) == 1 - 11 - 1100


def test_float64_runs_in_float32_as_in_a_call_of_the_function(twins: Twins) -> None:
    """Refused before, where NumPy's own numbers are float64 and `fit` and a call of the function cast them."""
    run = tf.function(lambda x: x * 3 + np.float64(1) / 3)
    for made in (twins.strategy.run(run, (np.array([0.1]),)), run(np.array([0.1]))):
        assert str(made.dtype) == "float32"
        np.testing.assert_array_equal(made.numpy(), np.float32(0.1) * np.float32(3) + np.float32(1 / 3))


def test_what_a_strategy_refuses_to_run(twins: Twins) -> None:
    strategy, run = twins.strategy, tf.function(lambda x: x + 1.0)

    def plain(x: Any) -> Any:
        return x

    with pytest.raises(ValueError, match=r"'plain' is no tf\.function.*write @tf\.function above it"):
        strategy.experimental_run_v2(plain, (np.float32(1),))
    with pytest.raises(TypeError, match="argument x of <lambda> is a generator"):
        strategy.run(run, ((each for each in [1.0]),))
    with pytest.raises(ValueError, match="jit_compile is False for <lambda>, which runs on /device:IPU:0"):
        strategy.run(tf.function(lambda x: x, jit_compile=False), (np.float32(1),))
    without = IPUStrategy(enable_dataset_iterators=False)
    data = iter(tf.data.Dataset.from_tensor_slices(np.ones(3, np.float32)))
    with pytest.raises(RuntimeError, match="enable_dataset_iterators=False"):
        without.run(tf.function(lambda: next(data)))
    assert strategy.executables == without.executables == ()


@pytest.mark.slow
def test_the_custom_training_loop_of_the_user_guide(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images = (np.random.default_rng(0).random((640, 8, 8)) * 255).astype("uint8")
    labels = np.arange(640) % 10
    monkeypatch.setattr(keras.datasets.mnist, "load_data", lambda: ((images, labels), (images, labels)))
    file = Path(__file__).parent / "listings" / "custom_training.txt"
    found: dict[str, Any] = {"__name__": "listing"}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), found)
    lines = [line.split(" loss = ") for line in capsys.readouterr().out.splitlines() if " loss = " in line]
    assert [name for name, _ in lines] == ["Step 0", "Step 10"]
    assert all(0 < float(loss) < 10 for _, loss in lines)
    assert len(found["strategy"].executables) == 1
    assert int(found["opt"].iterations) == 20


def test_what_a_loop_or_branch_in_a_function_changes_need_not_be_returned(twins: Twins) -> None:
    feed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(np.arange(1.0, 5.0, dtype="f4")))
    given, odd = ipu.ipu_outfeed_queue.IPUOutfeedQueue(), tf.Variable(0)

    @tf.function
    def added() -> Any:
        def body(total: Any, x: Any) -> Any:
            given.enqueue(x * 10.0)
            tf.cond(x % 2.0 > 0.0, lambda: (odd.assign_add(1), x)[1], lambda: x)
            return total + x

        return ipu.loops.repeat(4, body, [0.0], feed)

    assert twins.strategy.run(added) == 10.0
    assert odd.numpy() == 2  # of 1, 2, 3 and 4
    np.testing.assert_array_equal(given.dequeue().numpy(), [10.0, 20.0, 30.0, 40.0])


def test_elements_of_an_outfeed_have_their_numpy(twins: Twins) -> None:
    given = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function
    def counted() -> None:
        for number in tf.range(3):
            given.enqueue({"count": number, "row": tf.ones((2,)) * 0.5})

    twins.strategy.run(counted)
    found = [(each["count"].numpy(), each["row"].numpy()) for each in given]
    assert [(int(count), row.tolist()) for count, row in found] == [(0, [0.5, 0.5]), (1, [0.5, 0.5]), (2, [0.5, 0.5])]
    assert [type(each) for each in found[0]] == [np.int32, np.ndarray]
