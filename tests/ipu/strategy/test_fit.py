"""`fit`, `evaluate` and `predict` of models made in a strategy's scope give Keras' own numbers, one program each."""

from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Subclassed, Twins, assert_alike, functional, sequential
from workbench import tf
from workbench.errors import InputError, WorkbenchError
from workbench.ipu.ipu_strategy import IPUStrategy


@pytest.mark.parametrize("build", [sequential, functional, Subclassed], ids=["sequential", "functional", "subclassed"])
def test_training_is_keras_own(twins: Twins, build: Any) -> None:
    ours, theirs = twins.made(build, here=True, steps_per_execution=3), twins.made(build, here=False)
    assert twins.fitted(ours) == pytest.approx(twins.fitted(theirs), rel=1e-5)
    assert_alike(ours, theirs)
    assert_alike(ours.optimizer, theirs.optimizer)
    assert len(twins.strategy.executables) == 1


class Losses(keras.callbacks.Callback):
    """The loss of each batch by itself: `fit` tells the mean since the metrics were last reset."""

    def __init__(self, alone: bool = True) -> None:
        super().__init__()
        self.alone = alone
        self.losses: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.alone:
            self.model.reset_metrics()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(float(logs["loss"]))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_the_first_ten_losses_are_keras_own_one_by_one(twins: Twins, optimizer: str) -> None:
    """Each batch's own in executions of one; the means that callbacks are told asynchronously in an execution of 12."""
    alone, means = [Losses(), Losses()], [Losses(alone=False), Losses(alone=False)]
    for steps, heard in ((1, alone), (12, means)):
        pair = [
            twins.made(
                functional,
                here=here,
                steps_per_execution=steps if here else 1,
                optimizer=keras.optimizers.get({"class_name": optimizer, "config": {"learning_rate": 0.05}}),
            )
            for here in (True, False)
        ]
        pair[0].set_asynchronous_callbacks(steps > 1)
        told = [twins.fitted(each, batch_size=4, callbacks=[hears]) for each, hears in zip(pair, heard, strict=True)]
        assert told[0] == pytest.approx(told[1], rel=1e-5)
        assert_alike(*pair)
    for ours, theirs in (alone, means):
        assert len(ours.losses) == len(theirs.losses) == 24
        assert len(set(ours.losses)) == 24
        np.testing.assert_allclose(ours.losses[:10], theirs.losses[:10], rtol=1e-5)
    # The mean of the first ten losses is what the tenth callback of the first epoch was told.
    assert np.mean(alone[0].losses[:10]) == pytest.approx(means[0].losses[9], rel=1e-5)


def test_evaluation_prediction_and_weights_of_samples_are_keras_own(twins: Twins) -> None:
    ours, theirs = twins.made(functional, here=True, steps_per_execution=3), twins.made(functional, here=False)
    weights = np.linspace(0, 2, 48).astype("float32")
    histories = [twins.fitted(each, sample_weight=weights) for each in (ours, theirs)]
    assert histories[0] == pytest.approx(histories[1], rel=1e-5)
    histories = [
        twins.fitted(each, class_weight={0: 1.0, 1: 3.0, 2: 0.5}, validation_split=0.5) for each in (ours, theirs)
    ]
    assert {name.split()[0] for name in histories[0]} == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert histories[0] == pytest.approx(histories[1], rel=1e-5)
    results = [each.evaluate(twins.x, twins.y, batch_size=8, verbose=0) for each in (ours, theirs)]
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    ahead = [each.predict(twins.x, batch_size=8, verbose=0) for each in (ours, theirs)]
    assert ahead[0].shape == (48, 3)
    np.testing.assert_allclose(ahead[0], ahead[1], rtol=1e-5)


@pytest.mark.slow
def test_fifty_steps_in_an_execution_are_fifty_of_one(twins: Twins) -> None:
    twins.x, twins.y = (np.concatenate([each] * 9)[:400] for each in (twins.x, twins.y))
    made = [twins.made(functional, here=True, steps_per_execution=steps) for steps in (1, 50)]
    histories = [twins.fitted(each) for each in made]
    assert histories[0] == pytest.approx(histories[1], rel=1e-6)
    assert_alike(*made, rtol=1e-6)
    assert [int(each.optimizer.iterations) for each in made] == [100, 100]
    loops = [set(run.profile.steps.query("kind == 'StreamCopy'").times) for run in twins.strategy.executables]
    assert loops == [{1}, {50}]


@pytest.mark.slow
def test_a_schedule_adam_and_dropout_go_on_over_executions(twins: Twins) -> None:
    def build() -> Any:
        return keras.Sequential([keras.layers.Dropout(0.3, seed=5), keras.layers.Dense(3)])

    def optimizer() -> Any:
        return keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 4, 0.5))

    made = [
        twins.made(build, here=here, steps_per_execution=steps, optimizer=optimizer())
        for here, steps in ((True, 6), (True, 1), (False, 1))
    ]
    histories = [twins.fitted(each) for each in made]
    assert histories[0] == pytest.approx(histories[2], rel=1e-5)
    assert histories[1] == pytest.approx(histories[2], rel=1e-5)
    for each in made[:2]:
        assert_alike(each, made[2])
        assert int(each.optimizer.iterations) == 12


def test_more_steps_of_an_execution_are_turns_of_one_loop_with_the_same_data(twins: Twins) -> None:
    for steps in (1, 6):
        twins.fitted(twins.made(functional, here=True, steps_per_execution=steps))
    one, six = (each.profile for each in twins.strategy.executables)
    assert twins.strategy.profile is six
    copies = [each.steps[each.steps.kind == "StreamCopy"] for each in (one, six)]
    # 8 samples of 6 float32, 8 int32 labels; the loss and the accuracy come back.
    assert sorted(copies[0].bytes_sent + copies[0].bytes_received) == [4, 4, 8 * 4, 8 * 6 * 4]
    assert sorted(copies[1].bytes_sent + copies[1].bytes_received) == [4, 4, 8 * 4, 8 * 6 * 4]
    assert set(copies[1].times) == {6}
    # A batch has 8 samples however many steps one execution takes.
    assert [each.meta["batch_size"] for each in (one, six)] == [8, 8]
    for profile, samples in ((one, 8), (six, 6 * 8)):
        assert profile.samples_per_second == pytest.approx(samples / profile.seconds)
        assert "batch size 8" in str(profile)


def test_models_outside_a_scope_and_keras_itself_stay_as_they_are(twins: Twins) -> None:
    new = keras.Model.__new__
    with twins.strategy.scope(), IPUStrategy().scope():
        inside = functional()
    assert keras.Model.__new__ is new
    outside = functional()
    assert not hasattr(outside, "set_gradient_accumulation_options")
    assert inside.__class__ is type(outside)
    assert (type(inside).__module__, type(inside).__qualname__) == (
        type(outside).__module__,
        type(outside).__qualname__,
    )
    with IPUStrategy(enable_keras_extensions=False).scope():
        assert type(functional()) is type(outside)


def test_data_that_an_ipu_cannot_be_given(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=4)
    for data, problem in (
        ({"x": None}, "fit was given no data"),
        ({"x": ((twins.x, twins.y) for _ in range(3))}, "the data are a Python generator"),
        ({"x": twins.x, "y": twins.y, "batch_size": 36}, "the last batch has 12 samples and the others 36"),
        ({"x": twins.x, "y": twins.y, "batch_size": 8}, "steps_per_execution 4, which does not divide 6 batches"),
    ):
        with pytest.raises(InputError, match=problem):
            model.fit(verbose=0, **data)
    ten = tf.data.Dataset.from_tensor_slices((twins.x, twins.y)).batch(8, drop_remainder=True)
    for dataset, steps, problem in (
        (ten.repeat(), None, "the data have no end, or nobody can tell"),
        (ten, 8, "an epoch has 8 steps, and the data have 6 batches"),
        (ten.take(0), None, "an epoch has 0 steps"),
    ):
        with pytest.raises(InputError, match=problem):
            model.fit(dataset, steps_per_epoch=steps, verbose=0)
    samples = tf.data.Dataset.from_tensor_slices((twins.x[:44], twins.y[:44]))

    class Smaller(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            return (twins.x[:5], twins.y[:5]) if index == 3 else (twins.x[:8], twins.y[:8])

    for data, problem in (
        (samples.batch(8), "a batch of the dataset has 4 samples"),
        (samples.batch(8).shuffle(3).take(4).map(lambda x, y: (x, y)), "a batch of the dataset has 4 samples"),
        (samples.filter(lambda x, y: True).batch(11), "a batch of the dataset may be smaller"),
        (Smaller(), "the last batch has 5 samples and the first 8"),
    ):
        with pytest.raises(InputError, match=problem):
            model.fit(data, verbose=0)
    with pytest.raises(InputError, match="y was given beside a dataset"):
        model.fit(ten, twins.y, verbose=0)
    assert not twins.strategy.executables
    eager = twins.made(functional, here=True, run_eagerly=True)
    with pytest.raises(RuntimeError, match="run_eagerly=True"):
        twins.fitted(eager)
    with pytest.raises(InputError, match="nothing was compiled yet"):
        twins.strategy.profile  # noqa: B018


def test_datasets_of_whole_batches_are_taken_and_a_smaller_one_never_makes_a_program(twins: Twins) -> None:
    model = twins.made(functional, here=True)
    samples = tf.data.Dataset.from_tensor_slices((twins.x[:44], twins.y[:44]))
    for data in (
        samples.batch(11),
        samples.batch(8).take(5),
        samples.repeat().batch(8).take(4),
        samples.filter(lambda x, y: True).batch(8, drop_remainder=True),
    ):
        model.fit(data, steps_per_epoch=4, verbose=0)
    compiled, before = len(twins.strategy.executables), int(model.optimizer.iterations)
    assert compiled == 2  # batches of 11, and of 8

    class Uneven(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            return (twins.x[:5], twins.y[:5]) if index == 1 else (twins.x[:8], twins.y[:8])

    with pytest.raises(WorkbenchError, match="as the first: a program is compiled for fixed shapes"):
        model.fit(Uneven(), shuffle=False, verbose=0)
    assert len(twins.strategy.executables) == compiled
    assert int(model.optimizer.iterations) == before + 1


def test_an_execution_longer_than_an_epoch_is_cut_to_it(twins: Twins, caplog: pytest.LogCaptureFixture) -> None:
    model = twins.made(functional, here=True, steps_per_execution=100)
    twins.fitted(model)
    assert "steps_per_execution of" in caplog.text
    assert model.steps_per_execution == 100
    assert twins.strategy.profile.meta["samples_per_call"] == 48


def test_a_failing_dataset_leaves_the_model_as_it_was_before_the_execution(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=3)
    before = model.get_weights()

    class Broken(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            if index == 2:
                raise OSError("the disk is gone")
            return twins.x[:8], twins.y[:8]

    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Broken(), verbose=0, shuffle=False)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    twins.fitted(model)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": np.ones((32, 6), object)}, "x holds Python objects or times. Expected: numbers."),
        ({"x": np.full((32, 6), "a")}, "x holds strings. Expected: numbers."),
        ({"y": np.ones((32, 3), "complex64")}, "y is complex64. Expected: real numbers."),  # lost a part in silence
        ({"sample_weight": np.ones(32, "complex64")}, "sample_weight is complex64. Expected: real numbers."),
        ({"epochs": "2"}, "epochs is '2'. Expected: a whole number of at least 0."),
        ({"epochs": 10**30}, f"epochs is {10**30}. Expected: a whole number of at least 0 and at most {2**31 - 1}."),
        ({"initial_epoch": -1}, "initial_epoch is -1. Expected: a whole number of at least 0."),
    ],
)
def test_fit_refuses_what_an_ipu_has_no_numbers_of_by_name(given: dict[str, Any], told: str) -> None:
    with IPUStrategy().scope():
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
        model.compile("sgd", "mse")
        with pytest.raises(InputError) as error:
            model.fit(**{"x": np.ones((32, 6)), "y": np.ones((32, 3)), "verbose": 0, **given})
    assert str(error.value).startswith(told)


def _model() -> Any:
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


_DATA = "arrays, a tf.data dataset or a keras.utils.PyDataset."
_SHARE = "a share of the samples: a number from 0 up to below 1."


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": "a"}, f"x is 'a'. Expected: {_DATA}"),
        ({"x": [[1.0]]}, f"x is [[1.0]]. Expected: {_DATA} To mend it: write np.asarray(x)."),
        ({"x": np.float32(3)}, "x is np.float32(3.0), a single number. Expected: an array of samples."),
        ({"x": np.ones((32, 7))}, "a sample of x has shape (7,). Expected: shape (6,), as the model "),
        ({"y": "a"}, "y is 'a'. Expected: an array of samples."),
        ({"y": np.ones((16, 3))}, "samples differ in number: x has 32, y has 16. Expected: as many of each."),
        ({"y": np.ones((32, 4))}, "a sample of y has shape (4,), and its loss 'mse' cannot take it: "),
        ({"y": None}, "y is missing, and the model "),
        ({"sample_weight": np.ones(8)}, "samples differ in number: x has 32, y has 32, sample_weight has 8."),
        ({"validation_data": (np.ones((32, 6)), "a")}, "y of validation_data is 'a'. Expected: an array of samples."),
        ({"validation_split": "a"}, f"validation_split is 'a'. Expected: {_SHARE}"),
        ({"validation_split": 1}, f"validation_split is 1. Expected: {_SHARE}"),
        ({"validation_split": float("nan")}, f"validation_split is nan. Expected: {_SHARE}"),
        ({"validation_split": 0.99}, "validation_split is 0.99, and x has 32 samples. Expected: a share that leaves "),
        ({"callbacks": ["a"]}, "callbacks holds 'a'. Expected: a keras.callbacks.Callback, or a list of them."),
        ({"callbacks": [keras.callbacks.History]}, "callbacks holds <class "),
        ({"class_weight": [1, 2]}, "class_weight is [1, 2]. Expected: a dictionary such as {0: 1.0, 1: 2.5}."),
        ({"class_weight": {"a": 1}}, "class_weight has the class 'a'. Expected: the number of a class"),  # was ignored
        ({"class_weight": {0: "a"}}, "class_weight of the class 0 is 'a'. Expected: a finite number such as 2.5."),
        ({"class_weight": {0: 2}, "y": None}, "class_weight was given for data without targets."),
        ({"class_weight": {0: 2}, "sample_weight": np.ones(32)}, "class_weight was given beside sample_weight."),
    ],
)
def test_fit_says_by_name_what_it_cannot_take(given: dict[str, Any], told: str) -> None:
    with IPUStrategy().scope(), pytest.raises(InputError) as error:
        _model().fit(**{"x": np.ones((32, 6)), "y": np.ones((32, 3)), "verbose": 0, **given})
    assert str(error.value).startswith(told)


@pytest.mark.parametrize(
    ("call", "given", "told"),
    [
        ("evaluate", {"x": np.ones((32, 6))}, "y is missing, and the model "),
        ("evaluate", {"x": np.ones((32, 6)), "y": np.ones((4, 3))}, "samples differ in number: x has 32, y has 4."),
        ("evaluate", {"x": "a", "y": "a"}, "x is 'a'."),
        ("evaluate", {"x": np.ones((32, 6)), "y": np.ones((32, 3)), "callbacks": 3}, "callbacks holds 3."),
        ("predict", {"x": np.ones((32, 7))}, "a sample of x has shape (7,). Expected: shape (6,), as the model "),
        ("predict", {"x": 3}, "x is 3."),
        ("predict", {"x": np.ones((32, 6)), "callbacks": "a"}, "callbacks holds 'a'."),
    ],
)
def test_evaluate_and_predict_say_by_name_what_they_cannot_take(call: str, given: dict[str, Any], told: str) -> None:
    with IPUStrategy().scope(), pytest.raises(InputError) as error:
        getattr(_model(), call)(**given, verbose=0)
    assert str(error.value).startswith(told)


def test_a_batch_of_a_dataset_that_does_not_fit_the_model_is_told_by_its_shape() -> None:
    dataset = tf.data.Dataset.from_tensor_slices((np.ones((32, 7), "f"), np.ones((32, 3), "f")))
    with IPUStrategy().scope(), pytest.raises(InputError, match=r"a sample of x has shape \(7,\)"):
        _model().fit(dataset.batch(32, drop_remainder=True), verbose=0)


def test_what_keras_takes_is_taken_as_before() -> None:
    """Weights by NumPy's numbers of classes; a callback that is Keras' by its methods alone; targets of one column."""
    heard: list[str] = []

    class Alone:
        def __getattr__(self, name: str) -> Any:
            if not name.startswith(("on_", "set_")):
                raise AttributeError(name)
            return lambda *given, **more: heard.append(name)

    with IPUStrategy().scope():
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        weights = {np.int64(0): 2.0, 1.0: np.float32(1)}
        model.fit(np.ones((32, 6, 1)), np.ones(32), verbose=0, class_weight=weights, callbacks=[Alone()])
    assert "on_epoch_end" in heard
