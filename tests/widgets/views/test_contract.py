"""What every view of a profile keeps to, over the registry: it follows one selection, explains and finds for whoever
asks, is small where it is stored, and is held by tests of its payload and of its script."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.handmade import handmade_pipeline
from tests.widgets.large import large_profile
from workbench.profiler.report import face
from workbench.widgets.face import views
from workbench.widgets.kit.base import View
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import comparison, diagnosis, schedules

NAMES = sorted(each.name for each in views())
each_view = pytest.mark.parametrize("name", NAMES)
HERE = Path(__file__).parent
MAX_STORED_BYTES = 500_000
# What draws the player is mostly the frames of the kit.
SCRIPT_OF = {"playback": r"kit/frames\.js"}


def shown(name: str, profile: Any) -> tuple[View, Selection]:
    selection = Selection()
    return face(name).widget(getattr(profile, name), selection=selection), selection


@each_view
@pytest.mark.parametrize("chosen", [{}, {"ipu": 1, "tile": 3}, {"step": 2}, {"variable": 1}, {"tile": 0, "step": 2}])
def test_what_is_chosen_is_explained(name: str, chosen: dict[str, int]) -> None:
    profile = handmade_pipeline()
    view, _ = shown(name, profile)
    told: list[Any] = []
    view.send = lambda content, buffers=None: told.append(content)
    view._handle_custom_msg({"explain": chosen}, [])
    (answer,) = told
    asked = chosen or {"ipu": profile.peak.ipu, "tile": profile.peak.tile}
    assert answer["explained"] == profile.explain(**asked).tree()
    assert answer["explained"]["formula"]


@each_view
def test_names_are_found(name: str) -> None:
    profile = handmade_pipeline()
    view, _ = shown(name, profile)
    told: list[Any] = []
    view.send = lambda content, buffers=None: told.append(content)
    wanted = str(profile.variables["name"].iloc[0])
    view._handle_custom_msg({"find": wanted, "asked": 7}, [])
    (answer,) = told
    assert answer["asked"] == 7
    assert wanted in [each["label"] for each in answer["found"] if each["kind"] == "variable"]


@each_view
def test_one_selection_is_shared_and_each_choice_of_it_is_taken(name: str) -> None:
    profile = handmade_pipeline()
    view, selection = shown(name, profile)
    assert view.selection is selection
    for choice in ({"ipu": 1}, {"tile": 15}, {"step": 0, "position": 0}, {"variable": 2}, {"layer": "stage_1"}):
        with selection.hold_sync():
            for field, value in choice.items():
                setattr(selection, field, value)
        assert view.data
    selection.clear()
    assert view.data


@cache
def many() -> Any:
    return large_profile(ipus=16, tiles=1472, steps=1_000)


@each_view
def test_stored_it_is_small_and_says_its_sentence(name: str) -> None:
    report = getattr(many(), name)
    state = face(name).stored(report)
    assert len(state.get("buffer", b"")) + len(json.dumps(state["data"])) < MAX_STORED_BYTES
    told = report.of(ipu=state["data"]["ipu"], tile=state["data"]["tile"]) if name == "liveness_view" else report
    assert told.sentence in json.dumps(state["data"], ensure_ascii=False)


SCRIPTS = "\n".join(path.read_text(encoding="utf-8") for path in HERE.parent.rglob("*.mjs"))
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in HERE.rglob("test_*.py") if path != Path(__file__))
OTHERS = [module.__name__.rpartition(".")[2] for module in (comparison, diagnosis, schedules)]


@pytest.mark.parametrize("name", sorted({*NAMES, *OTHERS}))
def test_its_payload_and_its_script_are_tested(name: str) -> None:
    by_name = rf'face\("{name}"\)|\b{name}\.(payload|stored|widget|content)\(|\.{name}\b'
    assert re.search(by_name, TESTS), "no test of what it sends"
    script = SCRIPT_OF.get(name, rf"views/{name}\w*\.js")
    assert re.search(script, SCRIPTS + TESTS), "no test of its script under node"
