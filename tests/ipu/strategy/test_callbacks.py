"""Callbacks of batches come once an execution, or asynchronously once a step."""

import threading
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, assert_alike, functional


class Heard(keras.callbacks.Callback):
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.batches: list[tuple[int, dict[str, Any]]] = []
        self.fails_at = fails_at

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert self.model.get_weights()
        self.batches.append((batch, dict(logs)))
        if len(self.batches) == self.fails_at:
            raise KeyError("a callback of mine")


def test_callbacks_come_once_an_execution_or_once_a_step(twins: Twins) -> None:
    models = [twins.made(functional, here=True, steps_per_execution=3) for _ in range(2)]
    models[1].set_asynchronous_callbacks(True)
    heard = [Heard(), Heard()]
    histories = [twins.fitted(model, callbacks=[each]) for model, each in zip(models, heard, strict=True)]
    assert [batch for batch, _ in heard[0].batches] == [2, 5, 2, 5]
    assert [batch for batch, _ in heard[1].batches] == [*range(6), *range(6)]
    assert len({logs["loss"] for _, logs in heard[1].batches}) == 12
    assert [heard[1].batches[place] for place in (2, 5, 8, 11)] == heard[0].batches
    assert histories[0] == histories[1]
    assert_alike(models[1], models[0])


def test_evaluation_and_prediction_are_heard_too(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=3)
    model.set_asynchronous_callbacks(True)
    outputs: list[Any] = []
    tested: list[int] = []

    class Hears(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            outputs.append(logs["outputs"])

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            tested.append(batch)

    model.evaluate(twins.x, twins.y, batch_size=8, verbose=0, callbacks=[Hears()])
    assert tested == [0, 1, 2, 3, 4, 5]
    whole = model.predict(twins.x, batch_size=8, verbose=0, callbacks=[Hears()])
    assert len(outputs) == 6
    np.testing.assert_array_equal(np.concatenate(outputs), whole)


def test_two_hundred_steps_of_an_execution_have_logs_of_their_own(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=200)
    model.set_asynchronous_callbacks(True)
    twins.x, twins.y = (np.concatenate([each] * 34)[:1600] for each in (twins.x, twins.y))
    heard = Heard()
    twins.fitted(model, epochs=1, callbacks=[heard])
    assert [batch for batch, _ in heard.batches] == list(range(200))
    losses = [logs["loss"] for _, logs in heard.batches]
    assert len(set(losses)) == 200


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_failing_callback_leaves_the_model_usable(twins: Twins, asynchronous: bool) -> None:
    model = twins.made(functional, here=True, steps_per_execution=3)
    model.set_asynchronous_callbacks(asynchronous)
    with pytest.raises(KeyError, match="a callback of mine"):
        twins.fitted(model, callbacks=[Heard(fails_at=2)])
    assert "outfeed poll" not in {thread.name for thread in threading.enumerate()}
    assert all(np.isfinite(each).all() for each in model.get_weights())
    twins.fitted(model)


@pytest.mark.slow
@pytest.mark.parametrize("fails_at", [1, 4])
def test_a_dataset_that_fails_midway_ends_the_thread_and_raises_its_own_error(twins: Twins, fails_at: int) -> None:
    """In the first execution of three batches, or in the second. Callbacks are told of every batch before it, the model
    keeps what it had before that execution.
    """
    model = twins.made(functional, here=True, steps_per_execution=3)
    model.set_asynchronous_callbacks(True)
    told = Heard()
    failure = OSError("the disk is gone")

    class Broken(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            if index == fails_at:
                raise failure
            return twins.x[8 * index : 8 * index + 8], twins.y[8 * index : 8 * index + 8]

    whole = twins.made(functional, here=True, steps_per_execution=3)
    whole.fit(twins.x[:24], twins.y[:24], batch_size=8, shuffle=False, verbose=0)
    fresh = twins.made(functional, here=True)
    with pytest.raises(OSError, match="the disk is gone") as raised:
        model.fit(Broken(), shuffle=False, verbose=0, callbacks=[told])
    assert raised.value is failure
    assert "outfeed poll" not in {thread.name for thread in threading.enumerate()}
    assert [batch for batch, _ in told.batches] == list(range(fails_at))
    for now, then in zip(model.get_weights(), (whole if fails_at == 4 else fresh).get_weights(), strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-6)
    history = twins.fitted(model, callbacks=[told])
    assert all(np.isfinite(each) for each in history.values())
    assert [batch for batch, _ in told.batches][-12:] == [*range(6), *range(6)]


def test_what_is_no_yes_or_no_is_refused(twins: Twins) -> None:
    with pytest.raises(ValueError, match="asynchronous is 3"):
        twins.made(functional, here=True).set_asynchronous_callbacks(3)
