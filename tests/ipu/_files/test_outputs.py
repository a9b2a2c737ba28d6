"""Reports and executables on disk, when the environment or the configuration asks for them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from tests.ipu.graphs import compiled, configure
from workbench import ipu, tf

X = np.arange(4, dtype=np.float32)


def double(x: jnp.ndarray) -> jnp.ndarray:
    return x * 2


def test_auto_report_writes_a_profile_for_each_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports")}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(asked))
    config = configure()
    profile = wb.profile(double, X, config=config)
    result = compiled(lambda x: x + 1, [tf.constant(X)])
    tf.Session().run(result)
    wb.profile(double, X, config=config)
    written = sorted(path.parent.name for path in tmp_path.rglob("profile.wbprofile"))
    assert written == ["double", "double_1", "main"]
    kept = wb.load_profile(tmp_path / "reports" / "double" / "profile.wbprofile")
    assert kept.total_cycles == profile.total_cycles


def test_the_configuration_may_ask_too(tmp_path: Path) -> None:
    options = {"autoReport.outputGraphProfile": "true", "autoReport.directory": str(tmp_path)}
    wb.profile(double, X, config=configure(1, compilation_poplar_options=options))
    assert (tmp_path / "double" / "profile.wbprofile").exists()


@pytest.mark.parametrize("options", ["", "{}", '{"autoReport.all": "false"}'])
def test_nothing_is_written_unasked(options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", options)
    wb.profile(double, X, config=configure())
    assert list(tmp_path.rglob("*.wbprofile")) == []


@pytest.mark.parametrize("name", ["autoReport.all", "autoReport.outputExecutionProfile"])
def test_a_switch_that_says_neither_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for off."""
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({"autoReport.all": "true", name: "yes"}))
    with pytest.raises(wb.OptionError, match=rf"^{name} is 'yes'\. Expected: 'true' or 'false'\.$"):
        wb.profile(double, X, config=configure())


def test_a_folder_of_a_name_that_none_can_have_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"autoReport.all": "true", "autoReport.directory": "n" * 300}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(asked))
    with pytest.raises(wb.InputError, match=r"^'n+/double' cannot be written: File name too long\."):
        wb.profile(double, X, config=configure())


@pytest.mark.parametrize("options", ["{", "[1]", "true"])
def test_options_that_are_none_are_an_error(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", options)
    with pytest.raises(wb.OptionError, match="POPLAR_ENGINE_OPTIONS is"):
        wb.profile(double, X, config=configure())


def test_executables_are_saved_and_run_without_their_source(tmp_path: Path) -> None:
    config = configure(1, serialization_output_folder=str(tmp_path))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="only")])
    executable = wb.compile(model, batch_size=3, mode="inference", config=config)
    (path,) = tmp_path.glob("*.wbexec")
    loaded = ipu.utils.load_executable(path)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert np.allclose(loaded.run(x)[0], executable.run(x))
    assert loaded.profile.total_cycles == executable.profile.total_cycles
    assert sorted(value.shape for value in loaded.variables.values()) == [(2,), (4, 2)]
    with pytest.raises(wb.InputError, match="compiled"):
        loaded.run(np.zeros((2, 4), np.float32))
    assert not any(name.endswith((".pkl", ".py")) for name in zipfile.ZipFile(path).namelist())


def test_what_a_program_updates_is_kept_with_the_loaded_one(tmp_path: Path) -> None:
    configure(1, serialization_output_folder=str(tmp_path))
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    result = compiled(lambda: count.assign_add(2.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(result)
    (path,) = tmp_path.glob("*.wbexec")
    loaded = ipu.utils.load_executable(path)
    assert [float(loaded.run()[0]) for _ in range(3)] == [2, 4, 6]


def test_programs_with_feeds_run_on_elements_that_are_given(tmp_path: Path) -> None:
    """A weight pulled to each element in turn; the loaded program gives the host the same losses."""
    configure(1, serialization_output_folder=str(tmp_path))
    elements = [(np.full((2, 3), number, np.float32), np.float64(number)) for number in range(12)]
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(elements), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(total: Any, x: Any, y: Any) -> Any:
        with tf.variable_scope("vs", use_resource=True):
            w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
        loss = tf.reduce_mean((x * w - y * 2.0) ** 2)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.control_dependencies([train, outfeed.enqueue({"loss": loss, "w": w})]):
            return total + loss

    result = compiled(lambda: ipu.loops.repeat(2, lambda v: ipu.loops.repeat(3, body, v, infeed), [0.0]))
    held = outfeed.dequeue()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (total,), taken = session.run(result), session.run(held)
        (behind,) = session.run(result)
    (path,) = tmp_path.glob("*.wbexec")
    loaded = ipu.utils.load_executable(path)
    (summed,) = loaded.run(feeds=elements)
    assert summed == pytest.approx(total)
    ((losses, weights),) = loaded.outfeeds.values()
    assert np.allclose(losses, taken["loss"])
    assert np.allclose(weights, taken["w"])
    assert losses.shape == (6,)
    (again,) = loaded.run(feeds={next(feed.name for feed in loaded.feeds if not feed.gives): elements[6:]})
    assert again == pytest.approx(behind)  # the next elements, from the weights of the last call
    with pytest.raises(wb.InputError, match=r"ended after 2 elements\. Expected: 6 for one call"):
        loaded.run(feeds=elements[:2])
    with pytest.raises(wb.InputError, match="without the elements of infeed_"):
        loaded.run()
    with pytest.raises(wb.InputError, match="have the shapes"):
        loaded.run(feeds=[(np.zeros(2, np.float32), np.float32(1))] * 6)


def test_an_outfeed_takes_what_a_branch_gives_it(tmp_path: Path) -> None:
    configure(1, serialization_output_folder=str(tmp_path))
    queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(value: Any) -> Any:
        given = tf.cond(value > 2.0, lambda: tf.group(queue.enqueue(value)), tf.no_op)
        with tf.control_dependencies([given]):
            return value + 1.0

    result, held = compiled(lambda: ipu.loops.repeat(5, body, [0.0])), queue.dequeue()
    with tf.Session() as session:
        session.run(result)
        assert session.run(held).tolist() == [3, 4]
    (path,) = tmp_path.glob("*.wbexec")
    loaded = ipu.utils.load_executable(path)
    assert float(loaded.run()[0]) == 5
    assert [each.tolist() for (each,) in loaded.outfeeds.values()] == [[3, 4]]


@pytest.mark.parametrize("kind", ["function", "loop"])
def test_programs_that_nobody_can_tell_the_feeds_of_are_saved_with_their_profile_alone(
    kind: str, tmp_path: Path
) -> None:
    configure(1, serialization_output_folder=str(tmp_path))
    queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def on_host(x: Any) -> Any:
        with ipu.scopes.outside_compilation_scope():
            return tf.py_function(np.cbrt, [x], tf.float32)

    def unknown(x: Any) -> Any:
        return ipu.loops.while_loop(
            lambda v: tf.reduce_sum(v) < 100.0, lambda v: (v * 2.0, queue.enqueue(v)), [x + 1.0]
        )

    result = compiled(on_host if kind == "function" else unknown, [tf.constant(X)])
    tf.Session().run(result)
    (path,) = tmp_path.glob("*.wbexec")
    loaded = ipu.utils.load_executable(path)
    assert loaded.profile.fits
    with pytest.raises(wb.InputError, match="saved without its numbers"):
        loaded.run()


def test_other_files_are_no_executables(tmp_path: Path) -> None:
    (tmp_path / "text.wbexec").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "zip.wbexec", "w") as archive:
        archive.writestr("manifest.json", "{}")
    for name in ("text", "zip"):
        with pytest.raises(wb.InputError, match="is no executable"):
            ipu.utils.load_executable(tmp_path / f"{name}.wbexec")
