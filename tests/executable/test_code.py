"""A compiled source knows its code: models of Keras, builders, programs by hand and graphs name lines with text."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb

HEAD = "import keras, numpy as np, workbench as wb\nfrom workbench import ipu, tf\n"
TARGET = 'target=wb.target("ipu2", tiles_per_ipu=4)'
MODEL = f"""{HEAD}
model = keras.Sequential([
    keras.Input((8,)),
    keras.layers.Dense(8, name="first"),  # cost
    keras.layers.Dense(4, name="last"),  # cost
])
profile = wb.profile(model, batch_size=2, mode="training", {TARGET})
"""
BUILDER = f"""{HEAD}
def block(x, name):
    return keras.layers.Dense(8, name=name)(x)  # cost


def build():
    inputs = x = keras.Input((8,))
    for number in range(2):
        x = block(x, f"dense_{{number}}")
    return keras.Model(inputs, keras.layers.Activation("tanh")(x))  # cost


profile = wb.profile(build, batch_size=2, {TARGET})
"""
BY_HAND = f"""{HEAD}
graph = wb.tiles.Graph("ipu2", tiles=4)
x, y, z = (graph.variable(name, 64).map_linearly() for name in "xyz")
add = graph.compute_set("add")  # cost
add.vertex("popops::BinaryOp1D", tile=1, op="ADD", a=x[:8], b=y[:8], out=z[:8])
both = graph.copy(z, x)  # cost
profile = wb.profile(graph.sequence(add, graph.repeat(3, both)))
"""
SESSION = f"""{HEAD}
config = ipu.config.IPUConfig()
config.auto_select_ipus, config.ipu_model.tiles_per_ipu = 1, 4
config.configure_ipu_system()
a = tf.placeholder(np.float32, [4, 4])


def body(a):
    b = tf.matmul(a, a)  # cost
    with tf.variable_scope("sums"):
        return tf.reduce_sum(b)  # cost


with ipu.scopes.ipu_scope("/device:IPU:0"):
    compiled = ipu.ipu_compiler.compile(body, [a])
with tf.Session() as session:
    session.run(compiled, {{a: np.ones((4, 4), np.float32)}})
    profile = session.profile
"""
PROGRAMS = {"model": MODEL, "builder": BUILDER, "by hand": BY_HAND, "session": SESSION}


def run(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    return names["profile"]


@pytest.fixture(autouse=True)
def _no_device() -> Iterator[None]:
    yield
    wb.ipu.config.reset_ipu_configuration()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_costs_is_named_by_its_line(kind: str, tmp_path: Path) -> None:
    text = PROGRAMS[kind]
    profile = run(tmp_path / "code.py", text)
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# cost")]
    source = profile.source
    assert sorted(source.lines["source"]) == sorted(f"code.py:{number}" for number in marked)
    assert all(cell.endswith("# cost") for cell in source.lines["text"])
    assert source.lines["cycles"].min() > 0
    assert source.lines["cycles"].sum() + source.unattributed_cycles == profile.ipus * profile.total_cycles
    (file,) = source.files
    assert dict(file["lines"]) == dict(enumerate(text.splitlines(), 1))


def test_code_is_in_the_file_of_a_profile(tmp_path: Path) -> None:
    profile = run(tmp_path / "code.py", MODEL)
    profile.save(tmp_path / "kept.wbprofile")
    again = wb.load_profile(tmp_path / "kept.wbprofile")
    assert again.meta["sources"] == profile.meta["sources"]
    assert again.source.data == profile.source.data


def test_what_a_session_keeps_is_not_whose_code_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile that is kept for later sessions holds no text, and comes back with that of the model at hand."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "kept"))
    wb.executable.cache.clear()
    run(tmp_path / "code.py", MODEL)
    wb.executable.cache.written()
    (kept,) = (tmp_path / "kept").glob("*.wbprofile")
    assert "sources" not in wb.load_profile(kept).meta
    wb.executable.cache.clear()
    moved = run(tmp_path / "other.py", f"# moved\n{MODEL}")
    assert sorted(moved.source.lines["source"]) == ["other.py:7", "other.py:8"]
    assert moved.source.lines["text"].str.endswith("# cost").all()
