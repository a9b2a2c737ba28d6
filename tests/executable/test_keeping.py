"""Profiles are written to disk when nobody works: no compile waits for a file, and none is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
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
    keeper.write_all()
    assert taken.read_text() == "not a folder"


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
