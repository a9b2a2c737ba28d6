"""Small recurrent and convolutional models in training, every micro-batch from the host.

Source: graphcore/tensorflow@b2127bba python/ipu/tests/rnn_test.py: cells, sizes, loss and optimizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.fidelity.measuring import measured
from tests.fidelity.outcome import Case, NotRun, said
from workbench import api
from workbench.executable import Executable

DIM, OUT = 128, 16
BATCHES = 100
KEEP = 0.75


def recurrent(case: Case) -> Any:
    """Cycles of all batches, or bytes."""
    name = case["id"].split("-")[1]
    if name not in MODELS:
        return NotRun(f"no model called {name!r}")
    return measured(_compiled(name), _quantity(case), times=BATCHES)


def long_short(case: Case) -> Any:
    """An LSTM with Keras, gradients accumulated; one call is 32 micro-batches."""
    text = said(case)
    accumulated = re.search(r"gradient accumulation (\d+)", text)
    steps = re.search(r"steps_per_execution (\d+)", text)
    if not accumulated or not steps:
        return NotRun("how many micro-batches a call has is not stated")
    executable = _lstm(int(accumulated[1]), staged="pipelined" in text or "pipelined" in case["id"])
    return measured(executable, _quantity(case), times=int(steps[1]) // int(accumulated[1]))


def _quantity(case: Case) -> str:
    word = case["id"].rsplit("-", 1)[1]
    words = {"cycles": "cycles", "total_memory": "sum over tiles", "max_memory": "max", "total": "sum over tiles"}
    return words.get(word, word)


@cache
def _lstm(accumulated: int, *, staged: bool) -> Executable:
    """On one IPU, or its two layers on one each."""
    import keras

    model = keras.Sequential([keras.Input((20, 16)), keras.layers.LSTM(64, name="cells"), keras.layers.Dense(8)])
    stages = {"stages": ["cells"]} if staged else {}
    return api.compile(
        model,
        mode="training",
        batch_size=16,
        optimizer=keras.optimizers.Adam(),
        loss="mse",
        gradient_accumulation_steps=accumulated,
        target="ipu2",
        **stages,
    )


@cache
def _compiled(name: str) -> Executable:
    import keras

    build, size, batch = MODELS[name]
    if name == "trivial_multiply":
        return _multiply(batch, *size)
    layers = build(keras.layers)
    model = keras.Sequential([keras.Input(size), *layers, keras.layers.Dense(OUT)], name=name)
    optimizer = keras.optimizers.Adam(0.01, epsilon=1e-3)
    return api.compile(model, mode="training", batch_size=batch, optimizer=optimizer, loss="mse", target="ipu2")


def _multiply(batch: int, steps: int, size: int) -> Executable:
    """A loop over time that multiplies by one variable, its outputs summed; Adam on the variable."""
    import keras

    class Multiply(keras.layers.Layer):
        def build(self, _shape: Any) -> None:
            self.factor = self.add_weight(shape=(), initializer=keras.initializers.Constant(7.0))

        def call(self, x: Any) -> Any:
            import jax

            series = keras.ops.transpose(x, (1, 0, 2))
            _, outputs = jax.lax.scan(lambda carry, now: (carry, now * self.factor), 0, series)
            return keras.ops.sum(outputs, axis=0)

    model = keras.Sequential([keras.Input((steps, size)), Multiply()], name="multiply")
    optimizer = keras.optimizers.Adam(0.01, epsilon=1e-3)
    return api.compile(model, mode="training", batch_size=batch, optimizer=optimizer, loss="mse", target="ipu2")


def _stack(*cells: tuple[str, int]) -> Callable[[Any], list[Any]]:
    """Cells over time with dropout behind each; the last gives its last state."""

    def build(layers: Any) -> list[Any]:
        found: list[Any] = []
        for number, (cell, size) in enumerate(cells):
            found.append(getattr(layers, cell)(size, return_sequences=number < len(cells) - 1))
            found.append(layers.Dropout(1 - KEEP))
        return found

    return build


def _convolutions(layers: Any) -> list[Any]:
    return [
        layers.Conv1D(DIM, 4),
        layers.MaxPooling1D(2, strides=1),
        layers.Conv1D(DIM, 4),
        layers.MaxPooling1D(2, strides=2),
        layers.Conv1D(DIM, 4),
        layers.Conv1D(DIM, 4),
        layers.Flatten(),
    ]


SERIES = (5, 16)
# name -> layers before the last dense one, shape of a sample, batch size
MODELS: dict[str, tuple[Callable[[Any], list[Any]], tuple[int, int], int]] = {
    "tf_rnn1": (_stack(("SimpleRNN", 2 * DIM)), SERIES, 2),
    "tf_rnn2": (_stack(("SimpleRNN", DIM), ("SimpleRNN", DIM)), SERIES, 2),
    "tf_lstm1": (_stack(("LSTM", DIM), ("LSTM", 3 * DIM)), (3, 16), 2),
    "tf_gru1": (_stack(("GRU", 2 * DIM), ("GRU", DIM)), SERIES, 2),
    "model_rnn1": (_stack(("SimpleRNN", 2 * DIM)), SERIES, 2),
    "model_rnn2": (_stack(("SimpleRNN", 2 * DIM), ("SimpleRNN", DIM)), SERIES, 2),
    "model_cnn1": (_convolutions, (32, 16), 1),
    "trivial_multiply": (lambda _: [], (32, 4056), 4),
}
