"""The stored faces: pictures that need no kernel, no script and no trust; names are text everywhere."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import workbench as wb
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from tests.widgets.evil import evil_profile
from tests.widgets.large import large_profile
from workbench.errors import InputError
from workbench.profiler.export import html
from workbench.profiler.report import face
from workbench.widgets import linked
from workbench.widgets.face import views
from workbench.widgets.kit import svg
from workbench.widgets.kit.palette import CATEGORIES, CAUSES, DIRECTIONS, MICRO_BATCHES

VIEWS = [each.name for each in views()]

MAKERS = {"loop": handmade_profile, "pipeline": handmade_pipeline}
each_view = pytest.mark.parametrize("name", VIEWS)
each_profile = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class Tags(HTMLParser):
    """Collects the tags of a page and the pictures' alternative texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.alts: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            found = dict(attrs)
            self.alts.append(found["alt"] or "")
            self.sources.append(found["src"] or "")


@each_view
@each_profile
def test_html_is_a_picture_with_its_sentence_and_a_table(name: str, make: Any) -> None:
    report = getattr(make(), name)
    found = Tags(face(name).html(report))
    # What JupyterLab's sanitiser keeps.
    cells = {"table", "thead", "tbody", "tr", "th", "td"}
    assert found.tags <= cells | {"figure", "img", "figcaption", "details", "summary", "p"}
    assert {"img", "table"} <= found.tags
    assert len(found.alts) == 1
    assert len(found.alts[0]) > 20
    head, _, data = found.sources[0].partition(",")
    assert head == "data:image/svg+xml;base64"
    root = ElementTree.fromstring(base64.b64decode(data))
    assert root.tag.endswith("svg")
    assert len(list(root.iter())) > 10


@each_view
def test_names_are_text(name: str) -> None:
    profile = evil_profile()
    text = face(name).html(getattr(profile, name))
    assert "<script" not in text
    picture = face(name).svg(getattr(profile, name))
    assert "<script" not in picture
    ElementTree.fromstring(picture)


@each_view
@each_profile
def test_figure_is_small(name: str, make: Any) -> None:
    figure = face(name).figure(getattr(make(), name))
    points = sum(np.size(trace.z) if trace.type == "heatmap" else np.size(trace.x) for trace in figure.data)
    assert 0 < points <= 20_000 or (name == "pipeline" and make is handmade_profile)


def test_figures_of_a_large_profile_are_small() -> None:
    profile = large_profile(ipus=2, tiles=1472, steps=3_000)
    for name in VIEWS:
        figure = face(name).figure(getattr(profile, name))
        points = sum(np.size(trace.z) if trace.type == "heatmap" else np.size(trace.x) for trace in figure.data)
        assert points <= 20_000, name


@each_view
def test_three_faces_at_once(name: str) -> None:
    bundle = getattr(handmade_pipeline(), name)._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}


def test_a_profile_shows_everything_and_is_small_when_stored() -> None:
    bundle = handmade_pipeline()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert len(Tags(bundle["text/html"]).alts) == len(VIEWS)
    large = linked.profile_view(large_profile(ipus=1, tiles=1472, steps=3_000)).html()
    assert len(large) < 200_000


def test_profiler_does_not_load_the_views() -> None:
    source = (
        "import sys\nimport workbench.profiler.profile, workbench.profiler.report, workbench.profiler.export.html\n"
        "drawn = ('workbench.widgets', 'anywidget', 'ipywidgets')\n"
        "assert not [name for name in sys.modules if name.startswith(drawn)]\n"
        "import workbench.widgets\nassert 'anywidget' not in sys.modules and 'plotly' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, cwd=Path(__file__).parents[2], timeout=60)


@each_profile
def test_page_is_self_contained(make: Any, tmp_path: Path) -> None:
    profile = make()
    path = profile.to_html(tmp_path / "profile.html")
    text = path.read_text(encoding="utf-8")
    names = linked.shown(profile)
    for name in names:
        assert f'id="view-{name}"' in text
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert len(text) < html.MAX_BYTES
    assert list(tmp_path.iterdir()) == [path]


def test_page_of_a_large_profile_is_small(tmp_path: Path) -> None:
    path = large_profile(ipus=4, tiles=1472, steps=5_000).to_html(tmp_path / "large.html")
    assert path.stat().st_size < html.MAX_BYTES


def test_names_cannot_end_the_page_s_script(tmp_path: Path) -> None:
    text = evil_profile().to_html(tmp_path / "evil.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert text.count("<script") == text.count("</script") == 1


def test_views_that_do_not_fit_give_way_to_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_BYTES", 302_000)
    text = html.page(handmade_profile())
    assert "start(load, [" in text
    assert text.count("<noscript>") < 5
    assert all(f'id="view-{name}"' in text for name in linked.shown(handmade_profile()))


def test_an_interrupted_export_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile.html"
    path.write_text("old", encoding="utf-8")

    def fail(*unused: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        handmade_profile().to_html(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_colours_stand_out_on_light_and_dark(ground: str) -> None:
    colours = [paint["colour"] for table in (CAUSES, CATEGORIES, DIRECTIONS) for paint in table.values()]
    assert min(contrast(colour, ground) for colour in [*colours, *MICRO_BATCHES]) >= 3.0


def test_causes_are_told_apart_without_colour() -> None:
    busy = [paint["pattern"] for name, paint in CAUSES.items() if not name.startswith("idle_")]
    idle = [paint["pattern"] for name, paint in CAUSES.items() if name.startswith("idle_")]
    assert len(set(busy)) == len(busy)
    assert len(set(idle)) == len(idle)


def test_png_is_a_picture() -> None:
    import io

    from PIL import Image

    pixels = svg.ramp(np.array([[0.0, 1.0, 2.0]]), 0, 2)
    image = Image.open(io.BytesIO(svg.png(pixels)))
    assert image.size == (3, 1)
    assert image.getpixel((0, 0)) == (0x0D, 0x27, 0x48, 255)
    assert image.getpixel((2, 0)) == (0xFD, 0xF3, 0xA6, 255)


def test_a_near_view_is_asked_for_and_a_list_is_told_apart() -> None:
    profile = handmade_profile()
    with pytest.raises(InputError, match=r"there is no view 'livenes'\. .* did you mean 'liveness'\?"):
        wb.views(profile, "livenes")
    names: Any = ["liveness", "trace"]
    with pytest.raises(InputError, match=r"To mend it: give each name by itself: wb\.views\(profile, \*names\)\."):
        wb.views(profile, names)
