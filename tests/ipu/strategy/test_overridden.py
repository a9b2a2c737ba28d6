"""What a model's or an optimizer's own class overrides acts, or is refused by name: it is never passed over."""

from typing import Any

import keras
import numpy as np
import pytest

from workbench import ipu
from workbench.ipu.ipu_strategy import IPUStrategy

INPUTS, TARGETS = np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)


@pytest.fixture(autouse=True)
def _one_small_ipu(fresh_system: None) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()


class OwnTrain(keras.Sequential):
    def make_train_function(self, force: bool = False) -> Any:
        return super().make_train_function(force)


class OwnTest(keras.Sequential):
    def make_test_function(self, force: bool = False) -> Any:
        return super().make_test_function(force)


class OwnPredict(keras.Sequential):
    def make_predict_function(self, force: bool = False) -> Any:
        return super().make_predict_function(force)


class OwnMinimize(keras.optimizers.SGD):
    def minimize(self, *given: Any, **named: Any) -> None:
        raise AssertionError("never called")


def model_of(kind: type[keras.Sequential], optimizer: Any = "sgd") -> Any:
    model = kind([keras.layers.Input((3,)), keras.layers.Dense(2)], name="small")
    model.compile(optimizer, loss="mse", steps_per_execution=2)
    return model


CALLS = {
    "train": lambda model: model.fit(INPUTS, TARGETS, batch_size=2, verbose=0),
    "test": lambda model: model.evaluate(INPUTS, TARGETS, batch_size=2, verbose=0),
    "predict": lambda model: model.predict(INPUTS, batch_size=2, verbose=0),
}


@pytest.mark.parametrize(("kind", "mode"), [(OwnTrain, "train"), (OwnTest, "test"), (OwnPredict, "predict")])
def test_a_function_of_its_own_is_refused_in_its_mode_alone(kind: type[keras.Sequential], mode: str) -> None:
    strategy = IPUStrategy()
    with strategy.scope():
        model = model_of(kind)
        with pytest.raises(RuntimeError, match=f"make_{mode}_function of the model 'small' is its own"):
            CALLS[mode](model)
        assert strategy.executables == ()
        for other in CALLS.keys() - {mode}:
            CALLS[other](model)
    assert len(strategy.executables) == 2


def test_a_function_of_its_own_is_kerass_business_outside_a_scope() -> None:
    CALLS["test"](model_of(OwnTest))


def test_a_minimize_of_its_own_is_refused_where_gradients_add_up_and_only_there() -> None:
    with IPUStrategy().scope():
        model = model_of(keras.Sequential, OwnMinimize(0.1))
        CALLS["train"](model)
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2)
        with pytest.raises(ValueError, match="OwnMinimize, has a minimize of its own"):
            CALLS["train"](model)
        CALLS["test"](model)
