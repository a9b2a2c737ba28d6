"""Models made in a scope save, load and clone as Keras' own, in and out of a scope; their options return in one."""

import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, functional, sequential
from workbench.errors import InputError


def configured(model: Any) -> Any:
    model.set_gradient_accumulation_options(3, gradient_accumulation_reduction_method="mean")
    model.set_asynchronous_callbacks(True)
    model.set_replication_options("sum")
    model.set_infeed_queue_options(prefetch_depth=2)
    model.set_pipelining_options(4, device_mapping=[0, 1])
    return model


@pytest.mark.parametrize("build", [sequential, pytest.param(functional, marks=pytest.mark.slow)])
def test_options_return_in_a_scope(twins: Twins, build: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    model = configured(twins.made(build, here=True, steps_per_execution=6))
    model.set_gradient_accumulation_options(3, gradient_accumulation_reduction_method="mean")
    twins.fitted(model)
    model.save(path)
    config = json.loads(zipfile.ZipFile(path).read("config.json"))
    plain = keras.saving.serialize_keras_object(twins.made(build, here=False))
    assert [config[name] for name in ("module", "class_name", "registered_name")] == [
        plain[name] for name in ("module", "class_name", "registered_name")
    ]
    outside = keras.models.load_model(path)
    assert type(outside) is type(twins.made(build, here=False))
    with twins.strategy.scope():
        inside = keras.models.load_model(path)
        again = keras.models.clone_model(model)
        read = type(outside).from_config(model.get_config())
    for each in (inside, again, read):
        assert each.get_config()["ipu_options"] == model.get_config()["ipu_options"]
    for each in (inside, outside):
        np.testing.assert_allclose(
            each.predict(twins.x, batch_size=8, verbose=0), model.predict(twins.x, batch_size=8, verbose=0), rtol=1e-5
        )
    twins.fitted(inside)


def test_stages_return_and_what_cannot_be_saved_says_so(twins: Twins, caplog: pytest.LogCaptureFixture) -> None:
    model = twins.made(sequential, here=True)
    assert "ipu_options" not in model.get_config()
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(4, offload_activations=True)
    with twins.strategy.scope(), caplog.at_level(logging.WARNING):
        again = keras.models.model_from_json(model.to_json())
    assert "are not saved: offload_activations" in caplog.text
    assert [each.pipeline_stage for each in again.get_pipeline_stage_assignment()] == [0, 1]


@pytest.mark.parametrize(
    ("call", "arguments", "problem"),
    [
        ("set_infeed_queue_options", {"dataset": 1}, "'dataset', which Keras sets"),
        ("set_infeed_queue_options", {"element_spec": 1}, "'element_spec', which Keras sets"),
        ("set_infeed_queue_options", {"speed": 1}, "no argument 'speed'"),
        ("set_infeed_queue_options", {"prefetch_depth": 0}, "prefetch_depth must be greater than zero"),
        ("set_outfeed_queue_options", {"outfeed_mode": 1}, "'outfeed_mode', which Keras sets"),
        ("set_outfeed_queue_options", {"buffer_depth": 0}, "buffer_depth must be greater than zero"),
        ("set_replication_options", {"replicated_metric_reduction_method": "most"}, "method is 'most'"),
    ],
)
def test_options_that_are_refused(twins: Twins, call: str, arguments: dict[str, Any], problem: str) -> None:
    model = twins.made(functional, here=True)
    with pytest.raises(InputError, match=problem):
        getattr(model, call)(**arguments)
    assert "ipu_options" not in model.get_config()


def test_queue_options_are_in_the_program(twins: Twins) -> None:
    model = twins.made(functional, here=True)
    model.set_infeed_queue_options(prefetch_depth=7)
    twins.fitted(model, epochs=1)
    assert "prefetch_depth=7" in str(twins.strategy.executables[0].graph)
