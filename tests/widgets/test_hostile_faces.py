"""Every face of every report of a model whose names are markup, code and hidden letters: they are text in all of them.

Reports are found by their class, drawn faces in the registry: a new one is asked for here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ipywidgets
import keras
import pytest

from tests.widgets.hostile import FREE, NAMES, RUN, hostile_answers, target, texts
from workbench.base.registry import faces
from workbench.base.text import markup, shown
from workbench.ipu.config import IPUConfig
from workbench.profiler.export.html import page_of
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, face
from workbench.widgets import linked
from workbench.widgets.app import App
from workbench.widgets.face import Face, views

HIDDEN = {letter for letter in NAMES[-1] + FREE if shown(letter) != letter}
RUNS = {"script", "iframe", "object", "embed", "svg", "style", "link", "base", "form", "textarea", "foreignObject"}


@pytest.fixture(scope="module")
def reports() -> dict[str, list[Report]]:
    """Every report of the hostile answers, by name; two profiles give most of them."""
    found: dict[str, list[Report]] = {}
    for _, answer in hostile_answers():
        views_of = [getattr(answer, each.name) for each in views()] if isinstance(answer, Profile) else [answer]
        for report in views_of:
            found.setdefault(report.name, []).append(report)
    return found


def kinds(base: type[Any]) -> Iterator[type[Report]]:
    """The reports of the package."""
    for each in base.__subclasses__():
        yield from kinds(each)
        if each.__module__.startswith("workbench.") and each.name:
            yield each


class Elements(HTMLParser):
    """What a page would make of a text: an element that runs, an attribute that does, an address outside."""

    def __init__(self, text: str, *allowed: str) -> None:
        super().__init__()
        self.allowed = allowed
        self.wrong: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wrong = tag in RUNS and tag not in self.allowed
        for name, value in attrs:
            wrong |= name.startswith("on") or (name in ("href", "src", "srcdoc", "action"))
            if name == "src" and tag == "img" and (value or "").startswith("data:image/"):
                wrong = False
        if wrong:
            self.wrong.append(self.get_starttag_text() or tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def assert_text(html: str) -> None:
    assert Elements(html).wrong == []
    assert not set(html) & HIDDEN


def test_every_report_and_every_face_is_among_them(reports: dict[str, list[Report]]) -> None:
    assert {each.name for each in kinds(Report)} == set(reports)
    drawn = {name for name, each in faces.items() if isinstance(each, Face)}
    assert drawn <= set(reports)
    assert len(drawn) >= 20


def test_what_a_notebook_stores_is_text(reports: dict[str, list[Report]]) -> None:
    said = ""
    for report in (each for found in reports.values() for each in found):
        bundle = report._repr_mimebundle_()
        assert_text(bundle["text/html"])
        assert not set(bundle["text/plain"]) & HIDDEN, report.name
        said += bundle["text/html"]
    assert markup(NAMES[0]) in said
    assert markup(shown(NAMES[-1])) in said


def test_pictures_are_text(reports: dict[str, list[Report]]) -> None:
    for name, found in reports.items():
        for report in found if name in faces else ():
            root = ElementTree.fromstring(report.svg())
            for element in root.iter():
                tag = element.tag.rpartition("}")[2]
                assert tag not in RUNS - {"svg", "style"}, name
                assert not [key for key in element.attrib if key.startswith("on")], name
                links = [value for key, value in element.attrib.items() if key.rpartition("}")[2] == "href"]
                assert all(each.startswith(("#", "data:image/")) for each in links), name
            assert not set(report.svg()) & HIDDEN, name


def test_live_states_and_figures_have_no_hidden_letters(reports: dict[str, list[Report]]) -> None:
    for name, found in reports.items():
        for report in found if name in faces else ():
            drawn: Any = face(name)
            if drawn.stored is not None:
                state = {key: value for key, value in drawn.stored(report).items() if key != "buffer"}
                assert not set(json.dumps(state, ensure_ascii=False)) & HIDDEN, name
            assert not set("".join(texts(json.loads(report.figure().to_json())))) & HIDDEN, name


def test_pages_are_text(reports: dict[str, list[Report]], tmp_path: Path) -> None:
    """One page of everything that a page draws, and that of each profile: their one script is our own."""
    paged = {name for name, each in faces.items() if isinstance(each, Face) and each.stored is not None}
    drawn = {name: found[0] for name, found in reports.items() if name in paged}
    pages = [page_of(drawn, FREE, NAMES[0], "\n".join((FREE, *NAMES)))]
    profiles = [answer for _, answer in hostile_answers() if isinstance(answer, Profile)]
    pages += [each.to_html(tmp_path / "page.html").read_text(encoding="utf-8") for each in profiles]
    for page in pages:
        head, script, rest = page.partition('<script type="module">')
        own, end, foot = rest.partition("</script>")
        assert script
        assert end
        assert foot == "</body></html>\n"
        found = Elements(head + foot, "style")
        assert found.wrong == []
        assert not set(page) & HIDDEN
        assert "</script" not in own
        assert head.count("<style>") == head.count("</style>")


@pytest.fixture(scope="module")
def app() -> App:
    """An app of two stages that was compiled twice, diagnosed, moved and compared."""
    layers = [keras.layers.Dense(8, name=name) for name in (NAMES[0], NAMES[-1])]
    config = IPUConfig()
    config.auto_select_ipus = 2
    app = App(keras.Sequential([keras.Input((8,)), *layers], name=f"model{NAMES[0]}{NAMES[-1]}"), config)
    app.target = target()
    for steps in (4, 8):
        app.options.set({"pipeline.gradient_accumulation_steps": steps})
        app.compile()
        assert app.wait(120)
        assert app.error is None
    app.history.compare(app.history.entries[0])
    app.whatif._handle_custom_msg({"do": "open"}, [])
    app.whatif._handle_custom_msg({"do": "move", "name": "batch_size", "at": 0, "done": True}, [])
    assert app.whatif.wait(60)
    return app


def inside(box: Any) -> Iterator[Any]:
    yield box
    for each in getattr(box, "children", ()):
        yield from inside(each)


def assert_app_is_text(app: App) -> str:
    """All that the app's parts show; of those that are HTML, what a page makes of it."""
    said = []
    for each in inside(app):
        state = {key: value for key, value in each.get_state().items() if key not in ("_esm", "_css")}
        said += list(texts(state))
        if isinstance(each, ipywidgets.HTML | ipywidgets.HTMLMath):
            assert_text(each.value)
        assert not state.get("description_allow_html"), each
    assert not set("".join(said)) & HIDDEN
    assert_text(app.html())
    return "\n".join(said)


def test_the_app_is_text(app: App) -> None:
    said = assert_app_is_text(app)
    assert f"model{NAMES[0]}" in said  # the list of models, the title of a compile
    assert len(app.history.entries) == 2
    assert app.history.compared is not None
    assert linked.shown(app.history.entries[0].profile)
    app.diagnose()
    assert app.wait(300)
    assert app.error is None
    assert_app_is_text(app)


def test_what_went_wrong_in_the_app_is_text(app: App) -> None:
    def build() -> Any:
        raise ValueError(f"{FREE}{NAMES[-1]}")

    build.__name__ = f"{FREE}{NAMES[-1]}"
    other = App(build)
    other.compile()
    assert other.wait(60)
    assert isinstance(other.error, Exception)
    assert RUN in str(other.progress.data["problem"])
    assert_app_is_text(other)
