"""Profile files: all or nothing on disk, and one clear error for whatever is not a whole profile."""

from __future__ import annotations

import io
import json
import os
import pickle
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import ProfileFileError
from workbench.profiler.profile import Profile
from workbench.profiler.schema import FORMAT_VERSION, SCHEMA
from workbench.profiler.storage import load_profile


def saved(folder: Path) -> Path:
    return handmade_profile().save(folder / "a.wbprofile")


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline])
def test_a_loaded_profile_is_the_same(make: Any, tmp_path: Path) -> None:
    profile = make()
    loaded = load_profile(profile.save(tmp_path / "a.wbprofile"))
    assert loaded.meta == profile.meta
    for name, table in profile.tables.items():
        for key, values in table.items():
            assert loaded.tables[name][key].tolist() == values.tolist()
            assert loaded.tables[name][key].dtype == values.dtype
    for name, array in profile.arrays.items():
        assert (loaded.arrays[name] == array).all()
        assert loaded.arrays[name].dtype == np.int64
    assert loaded.tiles.equals(profile.tiles)
    assert str(loaded) == str(profile)


def test_nothing_can_be_written_into_a_loaded_profile(tmp_path: Path) -> None:
    loaded = load_profile(saved(tmp_path))
    with pytest.raises(ValueError, match="read-only"):
        loaded.arrays["per_tile"][0, 0] = 1
    frame = loaded.tiles
    frame.loc[0, "total_bytes"] = 0
    assert loaded.tiles.loc[0, "total_bytes"] > 0


def compiled() -> Profile:
    """Of more tiles than those whose addresses a profile holds."""
    g = wb.tiles.Graph("ipu2", tiles=64)
    x = g.variable("x", (64, 250), "float32").map_linearly(tiles=64)
    return wb.profile(g.sequence(g.host_copy(x)))


@pytest.mark.parametrize("of_a_file", [False, True])
def test_a_profile_goes_to_another_process_whatever_was_looked_at(of_a_file: bool, tmp_path: Path) -> None:
    """As a worker of `multiprocessing` returns it; what was worked out here stays, so that it weighs no more."""
    profile = load_profile(compiled().save(tmp_path / "a.wbprofile")) if of_a_file else compiled()
    before = pickle.dumps(profile)
    assert profile.tiles.loc[3, "input"] == 1000  # 250 floats on each tile
    assert "of 624.0 KiB" in str(profile.xray)
    sent = pickle.dumps(profile)
    assert len(sent) <= 1.01 * len(before)
    got = pickle.loads(sent)
    assert got.tiles.equals(profile.tiles)
    assert str(got) == str(profile)
    assert str(got.xray) == str(profile.xray)


def message(path: Path) -> str:
    return (
        f"{str(path)!r} is not a whole profile file. Expected: a file written by Profile.save. "
        "To mend it: save the profile again with profile.save(path), or compile it anew."
    )


def test_cut_anywhere_it_is_the_same_error(tmp_path: Path) -> None:
    whole = saved(tmp_path).read_bytes()
    cut = tmp_path / "cut.wbprofile"
    for length in {*range(0, len(whole), 97), *range(len(whole) - 64, len(whole))}:
        cut.write_bytes(whole[:length])
        with pytest.raises(ProfileFileError) as caught:
            load_profile(cut)
        assert str(caught.value) == message(cut)


@given(st.binary(max_size=200))
def test_foreign_bytes(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "foreign"
        path.write_bytes(content)
        with pytest.raises(ProfileFileError) as caught:
            load_profile(path)
        assert str(caught.value) == message(path)


def rewritten(path: Path, changes: dict[str, bytes | None]) -> Path:
    """The file with some members replaced, or left out where the new content is None."""
    other = path.with_name("changed.wbprofile")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            content = changes.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return other


def head_with(path: Path, **changes: Any) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return json.dumps({**json.loads(archive.read("profile.json")), **changes}).encode()


def npy(values: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(values), allow_pickle=True)
    return buffer.getvalue()


def test_a_newer_file_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path)
    newer = rewritten(path, {"profile.json": head_with(path, version=FORMAT_VERSION + 1)})
    with pytest.raises(ProfileFileError) as caught:
        load_profile(newer)
    assert str(caught.value) == (
        f"{str(newer)!r} was written by a newer workbench (file version {FORMAT_VERSION + 1}). "
        f"Expected: file version {FORMAT_VERSION} or older. "
        "To mend it: update workbench, or save the profile with this version."
    )


def test_a_file_of_the_first_version_has_operators_without_bodies(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        texts = json.loads(archive.read("text/operators.json"))
    assert texts.pop("body")
    changes: dict[str, bytes | None] = {"operators/plan_cycles.npy": None}
    second = {**changes, "profile.json": head_with(path, version=2)}
    assert set(load_profile(rewritten(path, second)).operators["plan_cycles"]) == {0}
    assert set(load_profile(rewritten(path, second)).operators["body"]) == set(load_profile(path).operators["body"])
    changes |= {"profile.json": head_with(path, version=1), "text/operators.json": json.dumps(texts).encode()}
    read = load_profile(rewritten(path, changes)).operators
    assert set(read["body"]) == {""}
    assert set(read["plan_cycles"]) == {0}
    with pytest.raises(ProfileFileError):
        load_profile(rewritten(path, {"text/operators.json": changes["text/operators.json"]}))


@pytest.mark.parametrize(
    "changes",
    [
        {"steps/cycles.npy": None},
        {"steps/cycles.npy": npy([1, 2])},
        {"steps/cycles.npy": npy([0.5] * 13)},
        {"steps/cycles.npy": npy([object()] * 13)},
        {"steps/cycles.npy": b"nothing"},
        {"text/steps.json": b"{}"},
        {"text/steps.json": b"[1"},
        {"intervals/variable.npy": npy([99] * 10)},
        {"variables/bytes_index.npy": npy([-1] * 15)},
        {"array/per_tile.npy": npy(np.zeros((3, 5), dtype=int))},
        {"array/always_live.npy": None},
        {"profile.json": b"{}"},
        {"profile.json": b'{"format": "workbench profile", "version": "1"}'},
        {"profile.json": b'{"format": "workbench profile", "version": 1, "meta": {}, "rows": {}, "arrays": {}}'},
    ],
    ids=lambda changes: "-".join(f"{name}={str(content)[:12]}" for name, content in changes.items()),
)
def test_what_does_not_hold_together(changes: dict[str, bytes | None], tmp_path: Path) -> None:
    path = rewritten(saved(tmp_path), changes)
    with pytest.raises(ProfileFileError) as caught:
        load_profile(path)
    assert str(caught.value) == message(path)


def test_text_codes_are_checked(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        texts = json.loads(archive.read("text/steps.json"))
    texts["name"]["codes"][0] = 1_000
    with pytest.raises(ProfileFileError):
        load_profile(rewritten(path, {"text/steps.json": json.dumps(texts).encode()}))


def test_an_interrupted_save_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()

    def stop(self: zipfile.ZipFile, member: zipfile.ZipInfo, *data: Any) -> None:
        if member.filename.startswith("array/"):
            raise KeyboardInterrupt
        real(self, member, *data)

    real = zipfile.ZipFile.writestr
    monkeypatch.setattr(zipfile.ZipFile, "writestr", stop)
    with pytest.raises(KeyboardInterrupt):
        handmade_pipeline().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^no profile file .*nowhere"):
        load_profile(tmp_path / "nowhere")


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    whole = handmade_profile()
    arrays = {**whole.arrays, "allocated_as": np.full((1, 16), 16)}
    path = Profile(meta=whole.meta, tables=whole.tables, arrays=arrays).save(tmp_path / "a")
    with pytest.raises(ProfileFileError) as caught:
        load_profile(path)
    assert str(caught.value) == message(path)


def test_every_column_has_a_known_kind() -> None:
    assert {kind for columns in SCHEMA.values() for kind in columns.values()} == {"i", "f", "b", "U"}


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_and_not_waited_for(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.wbprofile"
    make(path)
    with pytest.raises(ProfileFileError, match="is a folder, a pipe or a device"):
        load_profile(path)


def test_the_same_profile_is_the_same_file_whenever_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = handmade_pipeline().save(tmp_path / "a").read_bytes()
    monkeypatch.setattr(time, "time", lambda: 1_900_000_000.0)
    assert handmade_pipeline().save(tmp_path / "b").read_bytes() == first
