"""Models that learn their shapes from an example are split with one, and functions without layers are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError

EXAMPLE = np.ones((4, 16), "float32")


def small() -> Any:
    return wb.target("ipu2", tiles_per_ipu=8)


def not_built() -> Any:
    return keras.Sequential([keras.layers.Dense(16) for _ in range(4)])


CUTTERS: dict[str, Callable[..., Any]] = {
    "wb.autosplit": lambda source, **more: wb.autosplit(source, 2, compiles=1, **more),
    "wb.fewest_ipus": lambda source, **more: wb.fewest_ipus(source, most=2, compiles=1, **more),
    "wb.compare_schedules": lambda source, **more: wb.compare_schedules(source, 2, **more),
    "wb.plan": lambda source, **more: wb.plan(source, global_batch=64, compiles=3, **more),
}


@pytest.mark.parametrize("inputs", [(), (jax.ShapeDtypeStruct((4, 16), "float32"),)])
@pytest.mark.parametrize("call", CUTTERS)
def test_a_function_of_arrays_has_no_layers(call: str, inputs: Any) -> None:
    with pytest.raises(InputError, match=f"'<lambda>' has no layers to cut, and {call} cuts .*wb.sweep"):
        CUTTERS[call](lambda x: x + 1, inputs=inputs)


def test_stages_of_a_model_that_is_built_by_its_example() -> None:
    split = wb.autosplit(not_built(), 2, compiles=1, inputs=(EXAMPLE,), mode="training", target=small())
    assert split.executable.profile.meta["batch_size"] == 4
    assert len(split.executable.profile.stages) == 2
    fewest = wb.fewest_ipus(not_built(), inputs=[EXAMPLE], mode="training", target=small())
    assert fewest.ipus == 1


def test_schedules_of_a_model_that_is_built_by_its_example() -> None:
    both = wb.compare_schedules(not_built(), 2, ("Grouped", "Sequential"), (False,), inputs=(EXAMPLE,), target=small())
    assert [len(each.stages) for each in both.profiles] == [2, 2]


def test_a_plan_has_the_batch_of_the_example() -> None:
    planned = wb.plan(not_built(), global_batch=64, compiles=3, inputs=(EXAMPLE,), target=small())
    assert set(planned.table["batch_size"]) == {4}
    assert planned.fits
