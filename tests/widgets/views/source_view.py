"""A view of two files beside the package, and what shows with it."""

from __future__ import annotations

from pathlib import Path

from tests.extended import extended, run
from tests.profiler.handmade import handmade_profile

VIEW = '''
"""Lines of code, as one number."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from workbench.profiler.reports.source import Source
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, picture_html
from workbench.widgets.kit.selection import Selection


class SourceView(View):
    """The number."""

    _esm = assets.stub("views/source.js")
    _css = assets.style("views/source")

    def __init__(self, report: Source, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.data = stored(report)["data"]


def stored(report: Source) -> dict[str, Any]:
    return {"data": {"text": f"{len(report.lines)} lines of code"}, "buffer": b""}


def draw(report: Source) -> str:
    picture = svg.Picture(200, 40, "Source")
    picture.text(10, 20, stored(report)["data"]["text"])
    return str(picture)


def html(report: Source) -> str:
    return picture_html(report.sentence, draw(report))


def figure(report: Source) -> go.Figure:
    return go.Figure(go.Bar(x=report.lines["source"], y=report.lines["cycles"]))


register(
    Face(
        name="source", title="Lines", order=25, short="lines",
        widget=SourceView, svg=draw, html=html, figure=figure, stored=stored,
    )
)
'''
SCRIPT_OF_VIEW = """
import {h} from "../kit/kernel.js";

function render({model, el}) {
  el.append(h("p", {class: "mine", text: model.get("data").text}));
}

export default {render};
"""
SCRIPT = """
import json, sys
import workbench as wb

profile = wb.load_profile(sys.argv[1])
report = profile.source
print(type(report.widget()).__name__, "lines of code" in report.svg(), type(report.figure()).__name__)
print(sorted(report._repr_mimebundle_()))
linked = wb.views(profile, "lines", "memory")
print([type(each).__name__ for each in linked.children], linked.children[0].selection is linked.children[1].selection)
whole = wb.views(profile)
print(json.dumps([type(each).__name__ for each in whole.children]))
print(sys.modules["workbench.widgets.linked"].profile_view(profile).children[1].titles[:3])
profile.to("html", sys.argv[2])
"""


def shown_in(folder: Path) -> tuple[Path, list[str]]:
    """The page that a package with the view writes, and the lines that tell where the view is."""
    saved = handmade_profile().save(folder / "a.wbprofile")
    added = {"widgets/views/source.py": VIEW, "widgets/views/source.js": SCRIPT_OF_VIEW}
    return folder / "a.html", run(extended(folder, added), SCRIPT, str(saved), str(folder / "a.html"))
