"""Orderings of recurrent layers: the layer against its cell in a loop, and more against less memory for products.

Source: graphcore/ipu_tensorflow_addons@6dcfc49a591a ipu_tensorflow_addons/v1/layers: gru_size_test.py and
lstm_size_test.py (halves, 512 units on 5 steps of 28), gru_training_test.py and lstm_training_test.py (floats, 256
units, 32 tiles).
"""

from __future__ import annotations

from typing import Any

from tests.fidelity.compiling import config, struct
from tests.fidelity.measuring import total_bytes
from workbench import api
from workbench.engine.target import target

STEPS, WIDTH, UNITS = 5, 28, 512
TILES, TRAINED_TILES = 8, 32
TRAINED, BATCH = 256, 256


def layer_against_cell(kind: str) -> tuple[int, int]:
    """Bytes of the layer, planned as one, and of its cell as a loop of products; code not counted."""
    import keras

    given = keras.Input((STEPS, WIDTH))
    how = {"reset_after": False} if kind == "GRU" else {}
    layer = getattr(keras.layers, kind)(UNITS, return_sequences=True, recurrent_initializer="zeros", **how)
    model = keras.Model(given, layer(given))
    options = config()
    options.ipu_model.compile_ipu_code = False
    machine = target("ipu2", tiles_per_ipu=TILES)
    custom = api.compile(model, mode="inference", batch_size=1, precision="float16", target=machine, config=options)
    function, shapes = (_gated, _GATED) if kind == "GRU" else (_long_short, _LONG_SHORT)
    inputs = [struct(*shape, dtype="float16") for shape in shapes]
    return total_bytes(custom), total_bytes(api.compile(function, *inputs, target=machine, config=options))


_STATE, _BOTH = (1, UNITS), WIDTH + UNITS
_GATED = ((STEPS, 1, WIDTH), _STATE, (_BOTH, 2 * UNITS), (2 * UNITS,), (_BOTH, UNITS), (UNITS,))
_LONG_SHORT = ((STEPS, 1, WIDTH), _STATE, _STATE, (_BOTH, 4 * UNITS), (4 * UNITS,))


def _gated(x: Any, h: Any, gates: Any, gate_bias: Any, kernel: Any, bias: Any) -> Any:
    """A gated recurrent unit over time: both gates by one product, the candidate by another."""
    import jax
    import jax.numpy as jnp

    def cell(h: Any, now: Any) -> Any:
        r, u = jnp.split(jax.nn.sigmoid(jnp.concatenate([now, h], 1) @ gates + gate_bias), 2, 1)
        made = u * h + (1 - u) * jnp.tanh(jnp.concatenate([now, r * h], 1) @ kernel + bias)
        return made, made

    return jax.lax.scan(cell, h, x)


def _long_short(x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> Any:
    """A long short-term memory over time: all gates by one product."""
    import jax
    import jax.numpy as jnp

    def cell(state: Any, now: Any) -> Any:
        h, c = state
        i, j, f, o = jnp.split(jnp.concatenate([now, h], 1) @ kernel + bias, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(j)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return jax.lax.scan(cell, (h, c), x)


def more_against_less(kind: str) -> tuple[int, int]:
    """Bytes of a training step with 0.8 and with 0.1 of a tile for what products need meanwhile."""
    import keras

    def size(proportion: float) -> int:
        model = keras.Sequential([keras.Input((1, TRAINED)), getattr(keras.layers, kind)(TRAINED)])
        options = config(matmuls={"availableMemoryProportion": str(proportion)})
        return total_bytes(
            api.compile(
                model,
                mode="training",
                batch_size=BATCH,
                loss="mse",
                optimizer=keras.optimizers.SGD(0.01),
                target=target("ipu2", tiles_per_ipu=TRAINED_TILES),
                config=options,
            )
        )

    return size(0.8), size(0.1)
