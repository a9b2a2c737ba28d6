"""Equal content is compiled once, and what differs in anything a profile shows is not equal.

Profiles kept between sessions: found by content, removed when damaged or old, never in the way.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

import workbench as wb
from workbench.engine.frontends.functions import trace_function
from workbench.engine.graph import Graph, Input, Output
from workbench.engine.options import Options
from workbench.engine.target import target
from workbench.executable import Executable, cache, keeping
from workbench.profiler.storage import load_profile, save_profile


def graph() -> Graph:
    kind = jax.ShapeDtypeStruct((4,), "float32")
    return trace_function(lambda x, y: x + y, kind, kind, name="sum").graph


def key(of: Graph) -> str:
    return cache.content(of, Options(), target("ipu2", tiles_per_ipu=4), 1).key


def test_equal_content_has_one_key() -> None:
    assert key(graph()) == key(graph())


@pytest.mark.parametrize(
    "other",
    [
        {"assumptions": ("one of two equal repetitions is shown",)},
        {"batch_size": 2},
        {"mode": "inference"},
        {"name": "other"},
        {"meta": {"stages": 2}},
        {"outputs": (Output(name="output", role="update", updates=0),)},
        {"inputs": tuple(Input(name=name, role="input", layer="l") for name in "ab")},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_a_profile_shows_is_in_the_key(other: dict[str, Any]) -> None:
    assert key(replace(graph(), **other)) != key(graph())


@pytest.fixture
def kept_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "kept"))
    cache.clear()
    return tmp_path / "kept"


def product(rows: int = 8, **arguments: Any) -> Executable:
    import jax.numpy as jnp

    x = jnp.ones((rows, 16), jnp.float32)
    return wb.compile(lambda a: a @ a.T, x, target=wb.target("ipu2", tiles_per_ipu=4), **arguments)


def files(folder: Path) -> list[Path]:
    cache.written()
    return sorted(folder.glob("*")) if folder.exists() else []


def another_session() -> None:
    cache.clear()


def test_a_later_session_finds_the_profile_and_compiles_only_when_asked_for_more(kept_in: Path) -> None:
    first = product()
    assert files(kept_in) == []  # a compile whose profile nobody asks for leaves nothing
    profile = first.profile
    assert len(files(kept_in)) == 1
    another_session()
    second = product()
    assert second.passes["phase"].tolist() == ["trace", "cache"]
    assert second.profile.total_cycles == profile.total_cycles
    assert second.profile.tiles.equals(profile.tiles)
    assert "fits" in repr(second).lower()
    again: list[str] = []
    assert str(second.program) == str(first.program)  # compiled here and now
    assert product(progress=again.append).passes["phase"].tolist() == ["trace", "cache"]  # from memory, as it is now
    assert again == ["trace"]


def test_other_content_is_another_profile(kept_in: Path) -> None:
    sizes = {product(rows).profile.total_cycles for rows in (8, 16, 64)}
    assert len(sizes) == 3
    assert len(files(kept_in)) == 3


def test_a_damaged_file_is_removed_and_made_again(kept_in: Path) -> None:
    cycles = product().profile.total_cycles
    (place,) = files(kept_in)
    place.write_bytes(place.read_bytes()[:100])
    another_session()
    again = product()
    assert "lower" in again.passes["phase"].tolist()
    assert again.profile.total_cycles == cycles
    assert files(kept_in) == [place]
    assert place.stat().st_size > 100


def test_an_entry_is_believed_only_with_its_key(kept_in: Path) -> None:
    small, large = product(8).profile.total_cycles, product(64).profile.total_cycles
    first, second = sorted(files(kept_in), key=lambda path: path.stat().st_mtime_ns)
    second.write_bytes(first.read_bytes())  # a whole profile, of other content
    another_session()
    again = product(64)
    assert "lower" in again.passes["phase"].tolist()
    assert small != large == again.profile.total_cycles
    cache.written()
    assert load_profile(second).total_cycles == large
    assert "kept_as" not in again.profile.meta


@pytest.mark.parametrize("positions", [["a"], [], [1, 2], [["a"], "b"], ["a", "a"], None, "ab", {}])
def test_an_entry_of_other_lines_than_its_content_has_is_none(kept_in: Path, positions: Any) -> None:
    content = cache.Content(key="its key", positions=("a.py:1", "a.py:2"))
    cache.keep_profile(content, product().profile)
    cache.written()
    newest = max(files(kept_in), key=lambda path: path.stat().st_mtime_ns)
    assert cache.earlier_profile(content) is not None
    kept = load_profile(newest)
    said = {**kept.meta["kept_as"], "positions": positions}
    save_profile(replace(kept, meta={**kept.meta, "kept_as": said}), newest)
    assert cache.earlier_profile(content) is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing", "empty"])
def test_what_is_no_file_in_the_place_of_an_entry_is_a_miss(kept_in: Path, kind: str) -> None:
    cycles = product().profile.total_cycles
    (place,) = files(kept_in)
    place.unlink()
    if kind == "folder":
        (place / "within").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "empty":
        place.touch()
    else:
        place.symlink_to(kept_in / "nothing")
    another_session()
    again = product()
    assert "lower" in again.passes["phase"].tolist()
    assert again.profile.total_cycles == cycles
    stays = kind in ("folder", "pipe")
    with pytest.warns(RuntimeWarning, match=f"is a {kind}") if stays else contextlib.nullcontext():
        cache.written()


def test_the_least_used_leave_first(kept_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (8, 16):
        assert product(rows).profile.total_cycles > 0
    older, newer = sorted(files(kept_in), key=lambda path: path.stat().st_mtime_ns)
    os.utime(older, (1, 1))
    os.utime(newer, (2, 2))
    another_session()
    assert product(8).profile.total_cycles > 0  # used: now the newest
    monkeypatch.setattr(keeping, "MOST_BYTES", 5 * older.stat().st_size // 2)  # two fit, three do not
    assert product(24).profile.total_cycles > 0
    assert newer not in files(kept_in)
    assert older in files(kept_in)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "a-file"
    taken.write_text("not a folder")
    monkeypatch.setenv("WORKBENCH_CACHE", str(taken))
    cache.clear()
    assert product().profile.total_cycles > 0
    with pytest.warns(RuntimeWarning, match="profiles are not kept for later sessions in .*a-file' is no folder"):
        cache.written()
    assert taken.read_text() == "not a folder"


@pytest.mark.parametrize("value", ["off", "memory"])
def test_nothing_is_written_when_the_environment_says_so(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cache.clear()
    assert product().profile.total_cycles > 0
    assert files(tmp_path) == []


def test_without_a_word_it_is_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder().name == "workbench"
