"""Optimizers by name."""

from __future__ import annotations

import keras
import pytest

from workbench.engine.frontends.step.losses import as_optimizer
from workbench.errors import InputError


@pytest.mark.parametrize("name", ["lamb", "Lamb", "LAMB"])
def test_lamb_has_a_name_as_the_others_do(name: str) -> None:
    assert type(as_optimizer(name)) is keras.optimizers.Lamb


@pytest.mark.parametrize("name", ["sgd", "adam", "AdamW", "rmsprop", "Lion"])
def test_names_that_keras_knows_are_its_own(name: str) -> None:
    assert type(as_optimizer(name)) is type(keras.optimizers.get(name))


def test_an_optimizer_stays_what_it_is() -> None:
    given = keras.optimizers.SGD(0.25)
    assert as_optimizer(given) is given


@pytest.mark.parametrize("name", ["lams", "LossScaleOptimizer", 3])
def test_what_is_no_optimizer_is_an_error_that_says_what_is(name: object) -> None:
    with pytest.raises(InputError) as error:
        as_optimizer(name)
    assert str(error.value).startswith(
        f"optimizer is {name!r}. Expected: an optimizer, or in any case one of: Adadelta, "
    )
    assert str(error.value).endswith("such as keras.optimizers.Lamb(1e-3).")
    assert "Lamb, " in str(error.value)


@pytest.mark.parametrize("given", [(False, 128), (True,), (0.0,)])
def test_arguments_of_an_earlier_loss_scale_optimizer_are_told_apart(given: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match=rf"initial_scale .* is {given[0]!r}\. Expected: a number above 0; in Keras 3"):
        as_optimizer(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), *given))


def test_a_loss_scale_optimizer_stays_what_it_is() -> None:
    given = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), 128.0)
    assert as_optimizer(given) is given
