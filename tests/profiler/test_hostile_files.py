"""Profile files that somebody broke on purpose or by accident: one clear error, or a profile every report can show."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.errors import ProfileFileError
from workbench.profiler import storage
from workbench.profiler.profile import Profile
from workbench.profiler.schema import SCHEMA
from workbench.profiler.storage import load_profile

with tempfile.TemporaryDirectory() as _folder:
    WHOLE = handmade_pipeline().save(Path(_folder) / "whole").read_bytes()


def loaded(content: bytes) -> Profile | None:
    """The profile of a file of these bytes, None where it is refused with the one error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.wbprofile"
        path.write_bytes(content)
        try:
            return load_profile(path)
        except ProfileFileError as error:
            refused = error
    assert str(path) in str(refused)
    assert refused.todo
    return None


def shown(profile: Profile) -> None:
    """Everything a reader may ask of a profile."""
    assert str(profile)
    for table in ("tiles", "variables", "steps", "liveness", "operators", "stages", "cycle_breakdown", "unmodelled"):
        getattr(profile, table)
    for report in (
        "summary",
        "insights",
        "memory",
        "liveness_view",
        "trace",
        "pipeline",
        "program_tree",
        "roofline",
        "playback",
        "exchange",
    ):
        assert str(getattr(profile, report))
    profile.blocks(max_rows=50)
    for step in profile.steps["id"]:
        assert str(profile.explain(step=int(step)))
    with tempfile.TemporaryDirectory() as folder:
        profile.to_html(Path(folder) / "a.html")


def test_the_whole_file_is_shown() -> None:
    for content in (WHOLE, rewritten()):
        found = loaded(content)
        assert found is not None
        shown(found)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_bytes_changed_anywhere(changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for place, change in changes:
        content[place] ^= change
    found = loaded(bytes(content))
    if found is not None:  # dates and attributes of members may change without harm
        whole = handmade_pipeline()
        assert found.meta == whole.meta
        assert found.tiles.equals(whole.tiles)


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside JSON data."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inside for found in places(each, (*path, key)))]


META = json.loads(json.dumps(handmade_pipeline().meta))
PLACES = places(META)[1:]


@given(st.sampled_from(PLACES), JUNK)
def test_junk_anywhere_in_its_description(path: tuple[Any, ...], junk: Any) -> None:
    meta = copy.deepcopy(META)
    inner = meta
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    found = loaded(rewritten(meta=meta))
    if found is not None:
        shown(found)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63), 10**400, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("path", [("total_cycles",), ("target", "clock_hz"), ("pipeline", "micro_batches"), ("new",)])
def test_numbers_that_nothing_can_be_computed_of(path: tuple[str, ...], number: float) -> None:
    meta = copy.deepcopy(META)
    inner = meta
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = number
    assert loaded(rewritten(meta=meta)) is None


@pytest.mark.parametrize("count", [None, 1.5, "4", -1, True, [4]])
def test_a_pipeline_has_whole_micro_batches(count: Any) -> None:
    meta = copy.deepcopy(META)
    meta["pipeline"]["micro_batches"] = count
    assert loaded(rewritten(meta=meta)) is None


NUMBERS = [(table, key) for table, columns in SCHEMA.items() for key, kind in columns.items() if kind == "i"]
WORDS = [(table, key) for table, columns in SCHEMA.items() for key, kind in columns.items() if kind == "U"]


@given(st.sampled_from(NUMBERS), st.integers(0, 999), st.sampled_from([-(1 << 62), -2, -1, 3, 1 << 20, 1 << 62]))
def test_wrong_numbers_in_any_column(column: tuple[str, str], row: int, wrong: int) -> None:
    found = loaded(rewritten(cell=(*column, row, wrong)))
    if found is not None:
        shown(found)


@given(st.sampled_from(WORDS), st.integers(0, 999), st.text(max_size=12) | st.just("<script>alert(1)</script>"))
def test_wrong_words_in_any_column(column: tuple[str, str], row: int, wrong: str) -> None:
    found = loaded(rewritten(cell=(*column, row, wrong)))
    if found is not None:
        shown(found)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        *(("inputs", text) for text in ("[]", "3", '{"a": {}}', '{"a": [null]}', '{"a": null}', "{", "[" * 100_000)),
        *(("of", text) for text in ("{}", "[3]", '[{"name": "a"}]', "[" * 100_000)),
        ("of", '[{"name": "a", "value": 1.5, "formula": "f", "inputs": {}}]'),
        ("of", '[{"name": 3, "value": 1, "formula": "f", "inputs": {}}]'),
        ("of", '[{"name": "a", "value": 1, "formula": [], "inputs": {}}]'),
        ("of", '[{"name": "a", "value": 1, "formula": "nosuch", "inputs": {}}]'),
        ("of", '[{"name": "a", "value": 1, "formula": "f", "inputs": [1]}]'),
    ],
)
def test_terms_that_are_none_are_refused(column: str, text: str) -> None:
    found = loaded(WHOLE)
    assert found is not None
    assert len(found.tables["terms"]["inputs"])
    assert loaded(rewritten(cell=("terms", column, 0, text))) is None


def rewritten(meta: Any = None, cell: tuple[str, str, int, Any] | None = None) -> bytes:
    """The file of the handmade pipeline with another description or another value in one cell."""
    whole = handmade_pipeline()
    tables = {name: {key: values.copy() for key, values in columns.items()} for name, columns in whole.tables.items()}
    if cell is not None:
        table, key, row, value = cell
        if len(tables[table][key]):
            if isinstance(value, str):  # a column is as wide as its longest text
                tables[table][key] = np.array([*tables[table][key].tolist(), value])[:-1]
            tables[table][key][row % len(tables[table][key])] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        Profile(meta=whole.meta if meta is None else meta, tables=tables, arrays=whole.arrays).save(path)
        return path.read_bytes()


def test_what_unpacks_to_too_much_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_BYTES", 30 << 20)
    path = tmp_path / "bomb.wbprofile"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("profile.json", "w", force_zip64=True) as member,
    ):
        for _ in range(31):
            member.write(bytes(1 << 20))
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ProfileFileError):
        load_profile(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_what_is_packed_as_no_profile_is_refused_unread(
    packing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each packer has errors of its own: a byte changed in one by LZMA was told to nobody's `except`."""
    path, other = tmp_path / "usual.wbprofile", tmp_path / "unusual.wbprofile"
    path.write_bytes(rewritten())
    with zipfile.ZipFile(path) as usual, zipfile.ZipFile(other, "w", packing) as unusual:
        for name in usual.namelist():
            unusual.writestr(name, usual.read(name))
    load_profile(path)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ProfileFileError):
        load_profile(other)


def test_a_function_that_calls_itself_is_refused() -> None:
    meta = copy.deepcopy(META)
    meta["trace"]["functions"]["fwd0"] = ["call", "fwd0", "again", 0, 0, "forward", 0]
    assert loaded(rewritten(meta=meta)) is None
    meta["trace"]["functions"]["fwd0"] = json.loads("[" * 300 + "]" * 300)
    assert loaded(rewritten(meta=meta)) is None


def test_what_a_killed_save_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    left = tmp_path / ".a.wbprofile.x1.part"
    fresh = tmp_path / ".a.wbprofile.x2.part"
    other = tmp_path / ".b.wbprofile.x3.part"
    for path in (left, fresh, other):
        path.write_bytes(b"half")
    os.utime(left, (1, 1))
    os.utime(other, (1, 1))
    handmade_profile().save(tmp_path / "a.wbprofile")
    assert sorted(path.name for path in tmp_path.iterdir()) == [fresh.name, other.name, "a.wbprofile"]


# A process of its own, without JAX and its threads, so that it can fork savers and kill them.
KILLER = """
import os, random, signal, sys, time
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.storage import load_profile

path, draw, made = sys.argv[1], random.Random(5), (handmade_profile(), handmade_pipeline())
made[0].save(path)
killed_at_work = 0
for _ in range(200):
    saver = os.fork()
    while not saver:
        for profile in made:
            profile.save(path)
    time.sleep(draw.uniform(0.0, 0.03))
    os.kill(saver, signal.SIGKILL)
    os.waitpid(saver, 0)
    assert load_profile(path).name in [profile.name for profile in made]
    left = [name for name in os.listdir(os.path.dirname(path)) if name.endswith(".part")]
    killed_at_work += bool(left)
    for name in left:
        os.remove(os.path.join(os.path.dirname(path), name))
print(killed_at_work)
"""


@pytest.mark.slow
def test_killed_200_times_while_saving_no_profile_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLER, str(tmp_path / "a.wbprofile")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    assert int(done.stdout) > 100  # most of them died with a file half written
