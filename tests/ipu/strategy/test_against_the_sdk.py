"""An LSTM in training as the SDK's own tests run and measure it: one execution of 32 batches, on one IPU and on two.

Source: graphcore/tensorflow@b2127bba python/ipu/tests/rnn_test.py:449-456, by the rows KLSTM of the fidelity data.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.fidelity.measuring import measured
from workbench.ipu.config import IPUConfig
from workbench.ipu.ipu_strategy import IPUStrategy

DATA = Path(__file__).parents[2] / "data" / "fidelity"
WORDS = {"cycles": "cycles", "total": "sum over tiles", "max": "max"}


def stated(name: str) -> dict[str, float]:
    rows = [row for file in ("cases_models", "also_models") for row in json.loads((DATA / f"{file}.json").read_text())]
    begin = f"KLSTM-{name}-"
    return {row["id"][len(begin) :]: float(row["expected"]) for row in rows if row["id"].startswith(begin)}


@cache
def executed(ipus: int) -> Any:
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    strategy, draw = IPUStrategy(), np.random.default_rng(0)
    with strategy.scope():
        model = keras.Sequential([keras.Input((20, 16)), keras.layers.LSTM(64), keras.layers.Dense(8)])
        model.compile("adam", "mse", steps_per_execution=32)
    if ipus == 1:
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=16)
    else:
        model.set_pipeline_stage_assignment([0, 1])
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=16)
    x, y = (draw.normal(size=shape).astype("float32") for shape in ((512, 20, 16), (512, 8)))
    model.fit(x, y, batch_size=16, verbose=0)
    assert int(model.optimizer.iterations.value) == 2
    (executable,) = strategy.executables
    return executable


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_system")
def test_cycles_and_bytes_of_an_execution_are_the_sdks_within_a_fifth() -> None:
    found = {ipus: {name: measured(executed(ipus), word) for name, word in WORDS.items()} for ipus in (1, 2)}
    wanted = {1: stated("lstm"), 2: stated("pipelined_lstm")}
    for ipus, values in found.items():
        assert values.keys() == wanted[ipus].keys()
        assert values == pytest.approx(wanted[ipus], rel=0.2)
    for name in WORDS:
        assert (found[1][name] > found[2][name]) == (wanted[1][name] > wanted[2][name])
