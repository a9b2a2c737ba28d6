"""What views ask of their profile: explanations as data, names by their words, and nonsense that is not answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.report import face
from workbench.widgets.face import views
from workbench.widgets.kit import answers

PROFILE = handmade_profile()


@pytest.mark.parametrize("ask", [{"tile": 0}, {"step": 3}, {"tile": 0, "step": 3, "ipu": 0}, {"variable": 0}])
def test_an_explanation_is_that_of_the_profile(ask: dict[str, int]) -> None:
    told = answers.explained(PROFILE, ask)
    found = PROFILE.explain(**ask)
    assert (told["subject"], told["value"], told["formula"]) == (found.subject, found.value, found.formula)
    assert [part["value"] for part in told["parts"]] == [part.value for part in found.parts[:12]]
    json.dumps(told)


def test_nothing_chosen_is_the_fullest_tile() -> None:
    peak = PROFILE.peak
    assert answers.explained(PROFILE, {})["value"] == PROFILE.explain(tile=peak.tile, ipu=peak.ipu).value


def test_what_cannot_be_explained_says_so() -> None:
    assert "tile" in answers.explained(PROFILE, {"tile": 10**6})["problem"]


@pytest.mark.parametrize("message", [None, 3, {}, {"explain": 3}, {"find": 3}, {"apply": 1}])
def test_nonsense_is_not_answered(message: Any) -> None:
    assert answers.answer(PROFILE, message) is None


def test_names_are_found_by_every_word_and_choose_what_they_name() -> None:
    told = answers.answer(PROFILE, {"find": "KERNEL dense_1", "asked": 7})
    assert told is not None
    assert told["asked"] == 7
    kinds = {entry["kind"] for entry in told["found"]}
    assert "variable" in kinds
    for entry in told["found"]:
        assert "dense_1" in entry["label"]
        assert "kernel" in entry["label"]
        if entry["kind"] == "variable":
            assert PROFILE.variables["name"].iloc[entry["select"]["variable"]] == entry["label"]
    json.dumps(told)


def test_tiles_and_ipus_are_found_by_their_number() -> None:
    found = list(answers.found(handmade_pipeline(), "1"))
    assert {"kind": "tile", "label": "tile 1", "select": {"tile": 1}} in found
    assert {"kind": "IPU", "label": "IPU 1", "select": {"ipu": 1, "tile": None}} in found
    assert [entry["kind"] for entry in answers.found(handmade_pipeline(), "ipu 1")].count("IPU") == 1
    assert not [entry for entry in answers.found(PROFILE, "tile 999999") if entry["kind"] == "tile"]


@pytest.mark.parametrize("name", [each.name for each in views()])
def test_every_view_of_a_profile_answers(name: str) -> None:
    view, sent = face(name).widget(getattr(handmade_pipeline(), name)), list[Any]()
    view.send = lambda content, buffers=None: sent.append(content)
    view._handle_custom_msg({"explain": {}}, [])
    assert [each["explained"]["subject"] for each in sent if "explained" in each]


def test_a_number_is_said_as_numbers_are_and_found_with_and_without_its_comma() -> None:
    g = wb.tiles.Graph("ipu2")
    profile = wb.profile(g.sequence(g.host_copy(g.variable("x", (4,)).map_linearly(tiles=1))))
    said = {"kind": "tile", "label": "tile 1,471", "select": {"tile": 1471}}
    assert list(answers.found(profile, "1471")) == list(answers.found(profile, "tile 1,471")) == [said]
