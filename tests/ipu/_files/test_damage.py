"""A damaged file of tensors or of an executable is an error of ours, or as good as the whole one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InputError
from workbench.ipu._files import executables, tensors
from workbench.ipu._files.outputs import file_name

X = np.arange(16, dtype="float32").reshape(4, 4)


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, float, bytes]:
    """What is done to a file, at which fraction of it, with which bytes."""
    what = draw(st.sampled_from(["overwrite", "insert", "cut", "remove"]))
    return what, draw(st.floats(0, 1)), draw(st.binary(min_size=1, max_size=8))


def damaged(whole: bytes, damage: tuple[str, float, bytes]) -> bytes:
    what, place, other = damage
    at = int(place * (len(whole) - 1))
    rest = {
        "overwrite": other + whole[at + len(other) :],
        "insert": other + whole[at:],
        "cut": b"",
        "remove": whole[at + len(other) :],
    }
    return whole[:at] + rest[what]


@cache
def saved() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        kind = jax.ShapeDtypeStruct((4, 4), "float32")
        program = wb.compile(lambda x: x @ x + 1, kind, target=wb.target("ipu2", tiles_per_ipu=2))
        return executables.save_executable(program, Path(folder) / "program.wbexec").read_bytes()


@given(damage=damages())
@settings(max_examples=40)
def test_executables(damage: tuple[str, float, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "program.wbexec"
    path.write_bytes(damaged(saved(), damage))
    try:
        found = executables.load_executable(path)
    except InputError:
        return
    np.testing.assert_array_equal(found.run(X)[0], X @ X + 1)
    assert found.profile.total_cycles > 0


@given(damage=damages())
@settings(max_examples=200)
def test_tensors(damage: tuple[str, float, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "some.bin"
    held = [tensors.Stored(name="x", values=X), tensors.Stored(name="y", values=X[0].astype("int8"))]
    tensors.write(path, "input", held)
    path.write_bytes(damaged(path.read_bytes(), damage))
    try:
        found = tensors.read(path)
    except InputError:
        return
    assert list(found) == ["x", "y"]
    for each in held:
        np.testing.assert_array_equal(found[each.name], each.values)


def header(**changes: Any) -> dict[str, Any]:
    told = {"name": "x", "dtype": "float32", "shape": [4], "elements": 1, "offset_bytes": 0, "size_bytes": 16}
    return {"kind": "input", "tensors": [{**told, **changes}]}


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"kind": "input"},
        {"kind": "input", "tensors": {}, "more": 1}["more"],
        header(size_bytes=2**62),
        header(size_bytes=-16),
        header(offset_bytes=-16),
        header(offset_bytes=8),
        header(dtype="object"),
        header(dtype="nosuch"),
        header(dtype=3),
        header(shape=[3]),
        header(shape=[2**40, 2**40]),
        header(shape="4"),
        header(unknown=1),
    ],
    ids=str,
)
def test_a_header_that_says_what_is_not_so(told: Any, tmp_path: Path) -> None:
    import json
    import zlib

    text, data = json.dumps(told).encode(), bytes(16)
    head = len(text).to_bytes(8, "little") + zlib.crc32(text + data).to_bytes(4, "little")
    path = tmp_path / "some.bin"
    path.write_bytes(tensors.MARK + head + text + data)
    with pytest.raises(InputError):
        tensors.read(path)


def test_an_executable_that_unpacks_to_too_much_is_refused_before_it_is(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "bomb.wbexec"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("manifest.json", "w") as member:
        for _ in range(520):
            member.write(bytes(1 << 20))
    with pytest.raises(InputError, match=r"bomb\.wbexec is no executable: it unpacks to more than 536870912 bytes"):
        executables.load_executable(path)


@pytest.mark.parametrize(
    "name", ["..", ".", "", "...", "/etc/passwd", "../../x", "a\0b", "n" * 300, "ä" * 300, "\ud800"]
)
def test_a_file_of_a_model_stays_inside_its_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / file_name(name) / "profile.wbprofile"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert path.resolve().parent.parent == tmp_path.resolve()
