"""Programs of the Keras chapter of the user guide run with their import lines changed, on data of the tests' own."""

import importlib
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import workbench.tf as tf
from workbench import datasets
from workbench.ipu.config import IPUConfig
from workbench.tf.python import ipu

FOLDER = Path(__file__).parent / "listings"


@pytest.fixture(autouse=True)
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped digits where programs load MNIST, 28 x 28 bytes each."""
    small, labels = datasets.digits()[:2]
    images = np.kron(np.asarray(small).reshape(-1, 8, 8)[:, 1:8, 1:8], np.ones((4, 4))).astype("uint8")
    loaded = ((images, np.asarray(labels)), (images[:100], np.asarray(labels)[:100]))
    monkeypatch.setattr(keras.datasets.mnist, "load_data", lambda: loaded)


def run(name: str, changed: dict[str, str] | None = None, **names: Any) -> dict[str, Any]:
    """What a listing makes; `changed` are words of it that a test says otherwise."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    for word, other in (changed or {}).items():
        assert word in text
        text = text.replace(word, other)
    with_indent = f"if True:\n{text}" if text.startswith(" ") else text
    found = {"tf": tf, "ipu": ipu, **names}
    exec(compile(with_indent, name, "exec"), found)
    return found


class Calls(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.logs: list[tuple[float, ...]] = []
        self.asynchronous = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.logs.append(tuple(logs.values()))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the next `fit` of a Sequential model in a scope calls back."""
    calls, fit = Calls(), ipu.keras.SequentialExtension.fit

    def heard_fit(self: Any, *args: Any, **more: Any) -> Any:
        self.set_asynchronous_callbacks(calls.asynchronous)
        return fit(self, *args, callbacks=[calls], **more)

    monkeypatch.setattr(ipu.keras.SequentialExtension, "fit", heard_fit)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listing", "calls"), [("single_ipu", 200), ("steps_per_execution", 4), ("gradient_accumulation", 4)]
)
def test_a_model_of_one_ipu(listing: str, calls: int, heard: Calls) -> None:
    made = run(listing)
    profile = made["strategy"].profile
    assert len(heard.logs) == calls
    assert len(made["strategy"].executables) == 1
    assert profile.fits
    updates = 20 if listing == "gradient_accumulation" else 200
    assert int(made["model"].optimizer.iterations) == updates
    sums = [item for item in made["strategy"].executables[0].graph.inputs if item.role == "accumulator"]
    assert len(sums) == (6 if listing == "gradient_accumulation" else 0)


@pytest.mark.slow
def test_asynchronous_callbacks_come_for_every_step(heard: Calls) -> None:
    heard.asynchronous = True
    run("steps_per_execution")
    assert len(heard.logs) == 200
    assert len(set(heard.logs)) > 195  # chance may make two alike


def test_stages_of_layers_and_of_calls() -> None:
    with ipu.ipu_strategy.IPUStrategy().scope():
        for listing in ("sequential_stages", "functional_stages"):
            found = run(listing)["model"].get_pipeline_stage_assignment()
            assert [each.pipeline_stage for each in found] == [0, 0, 1, 1]


@pytest.mark.slow
def test_resnet50_has_a_stage_behind_an_addition(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resnet50: Any = importlib.import_module("workbench.tf.keras.applications.resnet50")
    made = resnet50.ResNet50
    monkeypatch.setattr(resnet50, "ResNet50", lambda weights: made(weights=None))
    found = run("resnet50")["model"].get_pipeline_stage_assignment()
    assert len(found) == 176
    first = [each.layer.name for each in found if each.pipeline_stage == 0]
    assert first[-1] == "conv4_block2_add"
    lines = [line for line in capsys.readouterr().out.splitlines() if "(" in line]
    assert len(lines) == 1 + 176
    assert len([line for line in lines if line.rstrip().endswith(" 0")]) == len(first)


def two_ipus_and_data() -> Any:
    """The dataset of the first listing, in the order of its images, and two IPUs."""
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    keras.utils.set_random_seed(5)
    text = (FOLDER / "single_ipu.txt").read_text(encoding="utf-8")
    assert ".shuffle(10000)" in text
    text = text.replace(".shuffle(10000)", "")
    given: dict[str, Any] = {"tf": tf, "ipu": ipu}
    exec(compile(text[text.index("def create_dataset") : text.index("# Create a strategy")], "data", "exec"), given)
    return given["dataset"]


@pytest.mark.slow
def test_a_pipeline(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = run("pipeline_of_2_4", dataset=two_ipus_and_data())
    assert "steps_per_execution of" in caplog.text  # 256, in epochs of 128
    assert int(made["model"].optimizer.iterations) == 2 * 128 // 16
    assert made["strategy"].executables[0].graph.meta["stages"] == 2


@pytest.mark.slow
def test_the_pipelines_of_both_versions_agree_after_equally_many_updates() -> None:
    """A step of the older class is an update of 16 batches, of the newer a batch: 8 steps an epoch are its 128.

    The loss takes logits here, as the models give: on shares that do not add up to one, Keras' loss soon is no number.
    """
    logits = {"Crossentropy()": "Crossentropy(from_logits=True)"}
    new = run("pipeline_of_2_4", logits, dataset=two_ipus_and_data())["model"]
    data = two_ipus_and_data()
    with pytest.warns(DeprecationWarning, match="PipelineSequential"):
        made = run("pipeline_of_2_1", {**logits, "steps_per_epoch=128": "steps_per_epoch=8"}, dataset=data)
    old = made["model"]
    assert int(old.optimizer.iterations) == int(new.optimizer.iterations) == 16
    assert made["strategy"].executables[0].graph.meta["stages"] == 2
    for ours, theirs in zip(old.get_weights(), new.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_older_pipeline_counts_updates() -> None:
    with pytest.warns(DeprecationWarning, match="PipelineSequential"):
        made = run("pipeline_of_2_1", dataset=two_ipus_and_data())
    assert int(made["model"].optimizer.iterations) == 2 * 128
