"""A model that was moved, copied or edited has the lines it has now, whatever a cache kept of it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import pytest

import workbench as wb
from workbench.executable import Executable, cache

FUNCTION = """\
import jax.numpy as jnp


def model(x):
    y = jnp.tanh(x)  # first
    return y @ y.T  # second
"""
BUILDER = """\
import keras


class Scaled(keras.layers.Layer):
    def call(self, x):
        y = keras.ops.sin(x)  # first
        return keras.ops.cumsum(y, axis=1)  # second


def model():
    return keras.Sequential([keras.Input((8,)), Scaled(name="scaled"), keras.layers.Dense(4, name="last")])
"""
SOURCES = {"function": FUNCTION, "builder": BUILDER}


EDITS = {
    "moved down": ("model.py", lambda text: "\n\n\n" + text),
    "a comment between": ("model.py", lambda text: text.replace("# first\n", "# first\n\n        # a word\n")),
    "copied": ("other.py", lambda text: text),
    "copied and moved": ("other.py", lambda text: "# a head\n" + text),
    "as it was": ("model.py", lambda text: text),
}


def lines_of(text: str, file: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        for mark in ("first", "second"):
            if line.endswith(f"# {mark}"):
                found[mark] = f"{file}:{number}"
    return found


def compiled(folder: Path, file: str, text: str) -> Executable:
    """The model of a file with this text, run anew."""
    names: dict[str, Any] = {}
    exec(compile(text, str(folder / file), "exec"), names)
    inputs = () if "keras" in text else (jax.ShapeDtypeStruct((8, 8), "float32"),)
    return wb.compile(names["model"], *inputs, target=wb.target("ipu2", tiles_per_ipu=4), batch_size=2)


def shown(executable: Executable) -> set[str]:
    return set(executable.profile.steps["source"]) - {""}


def in_graph(executable: Executable) -> set[str]:
    functions = executable.graph.functions.values()
    return {node.origin.source for function in functions for node in function.nodes} - {""}


def in_program(executable: Executable) -> set[str]:
    return {step.origin.source for step in executable.program.steps} - {""}


@pytest.fixture(params=["memory", "disk"])
def session(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Between two compiles: nothing with a cache in memory, another session with one on disk."""
    monkeypatch.setenv("WORKBENCH_CACHE", "memory" if request.param == "memory" else str(tmp_path / "kept"))
    cache.clear()
    return cache.clear if request.param == "disk" else lambda: None


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", SOURCES)
def test_lines_are_those_of_now(kind: str, edit: str, tmp_path: Path, session: Any) -> None:
    first = compiled(tmp_path / "code", "model.py", SOURCES[kind])
    assert shown(first) >= set(lines_of(SOURCES[kind], "model.py").values())
    session()
    file, change = EDITS[edit]
    text = change(SOURCES[kind])
    second = compiled(tmp_path / "code", file, text)
    assert second.passes["phase"].tolist() == ["trace", "cache"]  # taken, not made again
    assert shown(second) >= set(lines_of(text, file).values())
    assert {line.split(":")[0] for line in shown(second)} == {line.split(":")[0] for line in in_graph(second)}
    assert in_graph(second) >= set(lines_of(text, file).values())
    assert set(second.profile.tables["steps"]["source"]) - {""} == in_program(second)
    assert second.profile.total_cycles == first.profile.total_cycles
    assert second.profile.source.lines["cycles"].tolist() == first.profile.source.lines["cycles"].tolist()
    cache.clear()
    alone = compiled(tmp_path / "code", file, text)
    assert alone.profile.steps.equals(second.profile.steps)


def test_an_edit_of_the_work_is_other_content(tmp_path: Path, session: Any) -> None:
    first = compiled(tmp_path / "code", "model.py", FUNCTION)
    assert first.profile.total_cycles > 0
    session()
    text = FUNCTION.replace("tanh", "sin")
    second = compiled(tmp_path / "code", "model.py", text)
    assert "lower" in second.passes["phase"].tolist()
    session()
    joined = FUNCTION.replace("y = jnp.tanh(x)  # first\n    return y @ y.T", "return jnp.tanh(x) @ jnp.tanh(x).T")
    third = compiled(tmp_path / "code", "model.py", joined)  # the same work on one line: its cycles are one row
    assert shown(third) == {"model.py:5"}


def test_the_graph_of_a_moved_model_is_asked_before_its_profile(tmp_path: Path, session: Any) -> None:
    compiled(tmp_path / "code", "model.py", FUNCTION).profile  # noqa: B018
    session()
    moved = compiled(tmp_path / "code", "model.py", "\n" + FUNCTION)
    expected = set(lines_of("\n" + FUNCTION, "model.py").values())
    assert in_graph(moved) == expected
    assert shown(moved) == expected
    again = compiled(tmp_path / "code", "model.py", FUNCTION)
    assert shown(again) == set(lines_of(FUNCTION, "model.py").values())


def test_a_class_of_another_name_is_other_content(tmp_path: Path, session: Any) -> None:
    first = compiled(tmp_path / "code", "model.py", BUILDER)
    assert "Scaled" in set(first.profile.steps["layer_class"])
    session()
    second = compiled(tmp_path / "code", "model.py", BUILDER.replace("Scaled", "Waved"))
    assert "Waved" in set(second.profile.steps["layer_class"])
    assert "Scaled" not in set(second.profile.steps["layer_class"])
