"""Files of every released version of the schema: each opens in every view and stands beside a profile of today."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import workbench as wb
from workbench.profiler.profile import Profile
from workbench.profiler.registry import reports
from workbench.profiler.report import face
from workbench.profiler.schema import FORMAT_VERSION, not_recorded
from workbench.profiler.storage import load_profile, profile_bytes, profile_from
from workbench.widgets import linked

FOLDER = Path(__file__).parents[1] / "data" / "profiles"
FILES = sorted(FOLDER.glob("version_*.wbprofile"))
each_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


@cache
def today() -> Profile:
    """What the files were made of: an mlp in training, batch size 4, on 16 tiles."""
    return wb.profile("mlp", batch_size=4, mode="training", target=wb.target("ipu2", tiles_per_ipu=16))


def test_there_is_a_file_of_every_version_before_this_one() -> None:
    assert [path.stem for path in FILES] == [f"version_{number}" for number in range(1, FORMAT_VERSION)]


@each_file
def test_it_opens_in_every_report_and_every_view(path: Path) -> None:
    profile = load_profile(path)
    for name in reports:
        report = getattr(profile, name)
        assert report.sentence
        assert str(report)
    for name in linked.shown(profile):
        drawn = face(name)
        report = getattr(profile, name)
        assert "<img" in drawn.html(report) or "<table" in drawn.html(report)
        drawn.stored(report)
    linked.close(linked.profile_view(profile))


@each_file
def test_it_is_compared_with_one_of_today(path: Path) -> None:
    profile = load_profile(path)
    there, back = wb.compare(profile, today()), wb.compare(today(), profile)
    changes = there.headlines.set_index("quantity")["change"]
    assert (back.headlines.set_index("quantity")["change"] == -changes).all()
    assert changes["total_cycles"] == today().total_cycles - profile.total_cycles
    assert "<img" in face("comparison").html(there)
    face("comparison").stored(there)


@each_file
def test_what_it_lacks_reads_not_recorded(path: Path) -> None:
    version = int(path.stem.rpartition("_")[2])
    said = [text for text in load_profile(path).summary.data["warnings"] if "not recorded" in text]
    assert said == [not_recorded(version)]
    assert said[0] in str(load_profile(path).summary)


def test_later_versions_lack_less_and_this_one_nothing() -> None:
    lacking = [not_recorded(version).count(",") for version in range(1, FORMAT_VERSION)]
    assert lacking == sorted(lacking, reverse=True)
    assert not_recorded(FORMAT_VERSION) == ""
    assert not [text for text in today().summary.data["warnings"] if "not recorded" in text]
    again = profile_from(profile_bytes(load_profile(FILES[0])))
    assert [text for text in again.meta["warnings"] if "not recorded" in text] == [not_recorded(1)]
