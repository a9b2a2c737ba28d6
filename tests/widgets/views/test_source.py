"""The payload of the source view: every line that made steps, its text, and sums that are the program's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.profiler.handmade import CODE, handmade_pipeline, handmade_profile
from tests.widgets.evil import evil_profile
from tests.widgets.views.payloads import columns
from workbench.profiler.report import face
from workbench.widgets.views import source


@pytest.mark.parametrize("make", [handmade_profile, handmade_pipeline, evil_profile])
def test_lines_and_no_line_are_the_whole(make: Any) -> None:
    profile = make()
    data, buffer = source.payload(profile.source)
    sent = columns(data, buffer)
    assert data["total_cycles"] == profile.ipus * profile.total_cycles
    assert sent["cycles"].sum() + data["unattributed_cycles"] == data["total_cycles"]
    for place in range(len(data["lines"])):
        assert sent["step_cycles"][sent["step_line"] == place].sum() == sent["cycles"][place]
    assert sorted(sent["line"][sent["line"] >= 0].tolist()) == list(range(len(data["lines"])))


def test_text_stands_at_its_number() -> None:
    data, buffer = source.payload(handmade_profile().source)
    sent = columns(data, buffer)
    assert sent["number"].tolist() == [1, 2, 3, 4, 5, 6, 40]
    assert [data["texts"][place] for place in sent["text"]] == [*CODE, "print(model)"]
    assert data["lines"] == ["model.py:4", "model.py:5"]
    assert sent["line"].tolist() == [-1, -1, -1, 0, 1, -1, -1]
    # Three runs of exchange 1,040, matmul 600, relu 50 and gradient 400; and of matmul and gradient, 400 each.
    assert sent["cycles"].tolist() == [6_270, 2_400]
    assert sent["code_bytes"].tolist() == [2_048, 1_024]


def test_a_profile_without_text_says_so() -> None:
    profile = handmade_profile()
    bare = replace(profile, meta={name: value for name, value in profile.meta.items() if name != "sources"})
    data, buffer = source.payload(bare.source)
    sent = columns(data, buffer)
    assert sent["number"].tolist() == [4, 5]
    assert sent["text"].tolist() == [-1, -1]
    assert source.NO_TEXT in source.draw(bare.source)


def test_the_picture_has_the_code_and_what_is_left() -> None:
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(source.draw(handmade_profile().source)).iter()]
    assert CODE[3].strip() in texts
    assert "6.27 k" in texts
    assert "of no line: 3.21 k cycles (27.0 %)" in texts


def test_the_figure_sums_to_the_whole() -> None:
    profile = handmade_profile()
    bars = source.figure(profile.source).data[0]
    assert sum(bars.x) == profile.total_cycles
    assert list(bars.y) == ["model.py:4", "model.py:5", "no line"]


def test_steps_without_a_line_have_that_of_their_layer() -> None:
    lines = handmade_pipeline().source.lines.set_index("source")
    # Four micro-batches of 600 forward and 1,000 backward, 200 between two IPUs that both spend them, an update of 150.
    assert lines["cycles"].to_dict() == dict.fromkeys(("stages.py:2", "stages.py:3"), 4 * (600 + 1_000 + 2 * 200) + 150)


def test_lines_of_cells_are_named_as_the_notebook_names_them() -> None:
    report = handmade_pipeline().source
    data, _ = source.payload(report)
    assert sorted(data["lines"]) == ["Cell In[7], line 2", "Cell In[7], line 3"]
    assert sorted(report.lines["source"]) == ["stages.py:2", "stages.py:3"]
    assert "Cell In[7], line 2" in source.html(report)


def test_only_a_profile_that_names_lines_shows_it() -> None:
    profile = handmade_pipeline()
    meta = {name: value for name, value in profile.meta.items() if name != "layer_lines"}
    assert face("source").shown(profile)
    assert not face("source").shown(replace(profile, meta=meta))


def test_lines_that_are_not_drawn_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = handmade_profile()
    monkeypatch.setattr(source, "DRAWN", 1)
    monkeypatch.setattr(source, "BARS", 1)
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(source.draw(profile.source)).iter()]
    cut = "1 of 2 lines are shown, those with most cycles, in the order of the text"
    assert f"{cut}; of no line: 3.21 k cycles (27.0 %)" in texts
    bars = source.figure(profile.source).data[0]
    assert list(bars.y) == ["model.py:4", "1 cheaper line and no line"]
    assert sum(bars.x) == profile.total_cycles
