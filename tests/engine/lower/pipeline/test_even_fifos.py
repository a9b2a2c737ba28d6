"""What waits for the backward pass is spread over the tiles, however small what the layers make at a time."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from workbench import api
from workbench.engine.emit.context import LEAST_BYTES
from workbench.engine.program import TileProgram
from workbench.engine.target import target

MOST_OF_MEAN = 1.3
LAYERS = ("LSTM", "GRU", "SimpleRNN", "Dense")
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 5)) for seed in range(40)]


def pipelined(seed: int) -> TileProgram:
    """Three layers over short or long sequences on two or three IPUs."""
    import keras

    draw = Random(seed)
    steps, features, batch = draw.choice((4, 10, 30)), draw.choice((8, 16, 64)), draw.choice((1, 4, 16))
    layers: list[Any] = [keras.Input((steps, features))]
    for number in range(3):
        kind, units = draw.choice(LAYERS), draw.choice((16, 64, 128))
        how = {"activation": "gelu"} if kind == "Dense" else {"return_sequences": True}
        layers.append(getattr(keras.layers, kind)(units, name=f"layer{number}", **how))
    model = keras.Sequential([*layers, keras.layers.Dense(4, name="out")])
    executable = api.compile(
        model,
        mode="training",
        batch_size=batch,
        optimizer=keras.optimizers.SGD(),
        loss="mse",
        stages=draw.choice(([0, 0, 1, 1], [0, 1, 2, 2])),
        pipeline_schedule=draw.choice(("Grouped", "Interleaved")),
        gradient_accumulation_steps=12,
        target=target("ipu2", tiles_per_ipu=draw.choice((128, 1472))),
    )
    return executable.compiled.program


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fullest_tile_has_little_more_of_the_fifos_than_the_others(seed: int) -> None:
    program = pipelined(seed)
    for ipu in range(program.ipus):
        fifos = [one for one in program.variables if one.kind == "stash" and one.ipu == ipu and one.size_bytes]
        held = np.sum([one.bytes_per_tile for one in fifos], axis=0, dtype=np.int64)
        if fifos:
            assert held.max() <= MOST_OF_MEAN * held.mean() + 2 * LEAST_BYTES * len(fifos), f"IPU {ipu}"
