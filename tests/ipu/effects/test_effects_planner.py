"""Options of the planner change the profile in the direction their documentation says; each test names its option."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.ipu.config import IPUConfig


def matmul(left: Any, right: Any) -> Any:
    return left @ right


def convolution(images: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


# Deep sums of few results: partials of several tiles are added up.
CASES = [
    (matmul, "matmuls", [(16, 4096), (4096, 64)]),
    (convolution, "convolutions", [(1, 8, 8, 512), (3, 3, 512, 32)]),
]


@pytest.mark.parametrize(("source", "group", "shapes"), CASES)
def test_enable_fast_reduce_takes_fewer_cycles(source: Any, group: str, shapes: Any) -> None:
    found = []
    for value in ("false", "true"):
        config = IPUConfig()
        config.ipu_model.tiles_per_ipu = 64
        getattr(config, group).poplar_options = {"enableFastReduce": value}
        found.append(wb.profile(source, *(np.zeros(shape, "float32") for shape in shapes), config=config))
    plain, fast = found
    assert fast.total_cycles < plain.total_cycles


def test_partials_type_inter_tile_exchanges_half_as_much() -> None:
    """Partials computed in single precision go to other tiles in half."""
    found = []
    for travelling in ("float", "half"):
        config = IPUConfig()
        config.ipu_model.tiles_per_ipu = 64
        config.convolutions.poplar_options = {"partialsType.interTile": travelling}
        arrays = (np.zeros((1, 8, 8, 512), "float16"), np.zeros((3, 3, 512, 32), "float16"))
        steps = wb.profile(convolution, *arrays, config=config).steps
        reduced = steps[steps["name"].str.contains("reduce/exchange")]
        found.append(int(reduced["bytes_received"].sum()))
    wide, narrow = found
    assert 0 < narrow < wide


def test_clear_pass_type_plans_gradients_as_forward_products() -> None:
    """The weight gradient is planned otherwise than when its pass is known."""
    plans = []
    for cleared in (False, True):
        config = IPUConfig()
        config.ipu_model.tiles_per_ipu = 64
        config.matmuls.clear_pass_type = cleared
        given = keras.Input((256,), batch_size=64)
        model = keras.Model(given, keras.layers.Dense(192)(given))
        found: Any = wb.profile(model, mode="training", loss="mse", optimizer="sgd", config=config)
        plans.append([row.plan for row in found.operators.itertuples() if row.op == "matmul"])
    told, untold = plans
    assert told[0] == untold[0]  # the forward one
    assert told[1:] != untold[1:]


@pytest.mark.parametrize("shapes", [((4, 4096), (4096, 16)), ((8, 8), (8, 8)), ((64, 64), (64, 64))])
def test_remap_output_tensor_has_nothing_to_remap(shapes: Any) -> None:
    """Every tile with a part of a result has neighbours of it, so that PopLibs would leave it where it is."""
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 64
    arrays = [np.zeros(shape, "float32") for shape in shapes]
    profile = wb.profile(matmul, *arrays, config=config)
    (found,) = [row for row in profile.variables.itertuples() if row.name.endswith("matmul")]
    held = profile.vector(profile.column("variables", "bytes_index")[found.Index])
    assert held[held > 0].min() >= 2 * 4
