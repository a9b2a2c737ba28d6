"""Profiles are written to disk when nobody works: no compile waits for a file, and none is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.base.collection import paused_collection, resting_seconds
from workbench.executable import cache, keeping
from workbench.executable.keeping import Keeper
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile


@pytest.fixture
def profile() -> Profile:
    return handmade_profile()


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    """A keeper whose thread rests as long as a test asks."""
    monkeypatch.setattr(keeping, "REST_SECONDS", 3600.0)
    found = Keeper()
    yield found
    found.write_all()


def appeared(place: Path, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not place.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return place.exists()


def test_a_profile_waits_until_it_is_asked_for(keeper: Keeper, profile: Profile, tmp_path: Path) -> None:
    place, other = tmp_path / "kept" / "a.wbprofile", tmp_path / "kept" / "b.wbprofile"
    keeper.keep(other, profile)
    keeper.keep(place, profile)
    time.sleep(0.05)
    assert not place.parent.exists()
    keeper.write(place)
    assert load_profile(place).total_cycles == profile.total_cycles
    assert not other.exists()  # nobody asked for that one
    keeper.write_all()
    assert other.exists()


def test_the_thread_writes_when_nobody_works(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "REST_SECONDS", 0.2)
    place = tmp_path / "a.wbprofile"
    keeper = Keeper()
    with paused_collection():  # as a compile does
        keeper.keep(place, profile)
        assert resting_seconds() == 0.0
        time.sleep(0.6)
        assert not place.exists()
    assert appeared(place)
    later = tmp_path / "b.wbprofile"
    keeper.keep(later, profile)
    assert appeared(later)


def test_rest_begins_when_the_last_one_ends() -> None:
    with paused_collection():
        with paused_collection():
            pass
        assert resting_seconds() == 0.0
    time.sleep(0.01)
    assert 0.01 <= resting_seconds() < 60


def test_of_one_file_the_latest_is_written(keeper: Keeper, profile: Profile, tmp_path: Path) -> None:
    place = tmp_path / "a.wbprofile"
    keeper.keep(place, profile)
    keeper.keep(place, handmade_pipeline())
    keeper.write_all()
    assert load_profile(place).total_cycles == handmade_pipeline().total_cycles != profile.total_cycles


def test_no_more_wait_than_there_is_room_for(keeper: Keeper, profile: Profile, tmp_path: Path) -> None:
    places = [tmp_path / f"{number}.wbprofile" for number in range(keeping.MOST_WAITING + 2)]
    for place in places:
        keeper.keep(place, profile)
    assert [place.exists() for place in places] == [True, True, *[False] * keeping.MOST_WAITING]


def test_a_folder_that_is_a_file_keeps_nothing(keeper: Keeper, profile: Profile, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("not a folder")
    keeper.keep(taken / "a.wbprofile", profile)
    with pytest.warns(RuntimeWarning) as told:
        keeper.write_all()
    assert [str(each.message) for each in told] == [
        f"profiles are not kept for later sessions in {str(taken)!r}: {str(taken)!r} is no folder. Set WORKBENCH_CACHE "
        "to a folder that can be written to, or to 'memory', which keeps them for this session alone"
    ]
    keeper.keep(taken / "b.wbprofile", profile)
    keeper.write_all()  # of one folder it is said once
    assert taken.read_text() == "not a folder"


class Unwritable(dict):  # type: ignore[type-arg]
    """Tables of a profile of which a column cannot be made."""

    def items(self) -> Any:
        raise ValueError("no column")


def test_a_profile_that_cannot_be_written_stands_in_nobodys_way(
    keeper: Keeper, profile: Profile, tmp_path: Path
) -> None:
    bad, good = tmp_path / "bad.wbprofile", tmp_path / "good.wbprofile"
    keeper.keep(bad, replace(profile, tables=Unwritable(profile.tables)))
    keeper.keep(good, profile)
    with pytest.raises(ValueError, match="no column"):
        keeper.write_all()
    assert good.exists()
    assert not bad.exists()
    keeper.write_all()  # it was tried once


def test_the_thread_outlives_a_profile_that_cannot_be_written(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(keeping.threading, "excepthook", told.append)
    monkeypatch.setattr(keeping, "REST_SECONDS", 0.0)
    keeper = Keeper()
    keeper.keep(tmp_path / "bad.wbprofile", replace(profile, tables=Unwritable(profile.tables)))
    keeper.keep(tmp_path / "good.wbprofile", profile)
    assert appeared(tmp_path / "good.wbprofile")
    assert [each.exc_type for each in told] == [ValueError]


SCRIPT = """
import multiprocessing, os, sys, time
from pathlib import Path
from tests.profiler.handmade import handmade_profile
from workbench.base.collection import paused_collection, resting_seconds
from workbench.executable import keeping


def work(folder):
    keeping.REST_SECONDS = 3600.0
    keeping.KEEPER.keep(Path(folder) / "of_a_worker.wbprofile", handmade_profile())


def rest():
    time.sleep(0.05)
    os._exit(0 if 0.05 <= resting_seconds() < 60 else 1)


if __name__ == "__main__":
    import threading

    one = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(sys.argv[1],))
    one.start()
    one.join()
    assert one.exitcode == 0
    working, done = threading.Event(), threading.Event()

    def at_work():
        with paused_collection():
            working.set()
            done.wait()

    other = threading.Thread(target=at_work)
    other.start()
    working.wait()
    assert resting_seconds() == 0.0
    if os.fork() == 0:
        rest()  # the other thread is not in the child
    assert os.wait()[1] == 0
    done.set()
"""


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_a_worker_writes_what_waits_when_it_ends(start: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    given = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "KERAS_BACKEND": "jax"}
    subprocess.run([sys.executable, str(script), str(tmp_path), start], env=given, check=True, timeout=120)
    assert load_profile(tmp_path / "of_a_worker.wbprofile").total_cycles == handmade_profile().total_cycles


def test_a_folder_that_is_named_later_gets_the_profile_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax.numpy as jnp

    def look() -> list[Path]:
        x, target = jnp.ones((8, 16), jnp.float32), wb.target("ipu2", tiles_per_ipu=4)
        assert wb.compile(lambda a: a @ a.T, x, target=target).profile.total_cycles
        cache.written()
        return list(tmp_path.glob("*.wbprofile"))

    monkeypatch.setenv("WORKBENCH_CACHE", "memory")
    cache.clear()
    assert look() == []
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    (place,) = look()
    before = place.stat().st_mtime_ns
    assert look() == [place]
    assert place.stat().st_mtime_ns == before
    place.unlink()  # as another session may, for room
    assert look() == [place]
    cache.clear()


SESSION = """
import os
import jax.numpy as jnp
import workbench as wb
from workbench.executable import keeping

keeping.REST_SECONDS = 3600.0
found = wb.compile(lambda a: a @ a.T, jnp.ones((8, 16), jnp.float32), target=wb.target("ipu2", tiles_per_ipu=4))
assert found.profile.total_cycles > 0
assert not os.path.exists(os.environ["WORKBENCH_CACHE"]), "it was not to wait for a file"
if os.environ["FORKED"]:
    if os.fork() == 0:
        keeping.KEEPER.write_all()
        os._exit(os.path.exists(os.environ["WORKBENCH_CACHE"]))  # what waits is the parent's
    assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("forked", ["", "1"])
def test_the_end_of_a_session_writes_what_waits(forked: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    given = {**os.environ, "WORKBENCH_CACHE": str(folder), "KERAS_BACKEND": "jax", "FORKED": forked}
    subprocess.run([sys.executable, "-W", "ignore", "-c", SESSION], env=given, check=True, timeout=120)
    (place,) = folder.glob("*.wbprofile")
    assert load_profile(place).total_cycles > 0


def test_going_back_to_an_option_takes_its_profile_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slider that goes there and back collects each profile once, and writes its file once."""
    import jax.numpy as jnp

    from workbench.executable import executable as taken

    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    cache.clear()
    counted: list[Any] = []
    collect = taken.collect
    monkeypatch.setattr(taken, "collect", lambda *given: counted.append(1) or collect(*given))
    x, target = jnp.ones((8, 16), jnp.float32), wb.target("ipu2", tiles_per_ipu=4)

    def at(proportion: float) -> Profile:
        config = wb.ipu.config.IPUConfig()
        config.matmuls.poplar_options = {"availableMemoryProportion": str(proportion)}
        return wb.compile(lambda a: a @ a.T, x, target=target, config=config).profile

    first, other = at(0.6), at(0.1)
    again = at(0.6)
    assert len(counted) == 2
    assert again.meta["config"] == first.meta["config"] != other.meta["config"]
    assert again.meta["passes"][-1]["phase"] == "cache"
    assert again.tables is first.tables
    cache.written()
    kept = {load_profile(place).total_cycles for place in tmp_path.glob("*.wbprofile")}
    assert kept == {first.total_cycles, other.total_cycles}
    cache.clear()
