"""A view of two files beside the package, and what shows with it."""

from __future__ import annotations

from pathlib import Path

from tests.extended import extended, run
from tests.profiler.handmade import handmade_profile

VIEW = '''
"""Operators under the roof, as one number."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from workbench.profiler.reports.roofline import Roofline
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, picture_html
from workbench.widgets.kit.selection import Selection


class RooflineView(View):
    """The number."""

    _esm = assets.stub("views/roofline.js")
    _css = assets.style("views/roofline")

    def __init__(self, report: Roofline, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.data = stored(report)["data"]


def stored(report: Roofline) -> dict[str, Any]:
    return {"data": {"text": f"{len(report.points)} operators under the roof"}, "buffer": b""}


def draw(report: Roofline) -> str:
    picture = svg.Picture(200, 40, "Roofline")
    picture.text(10, 20, stored(report)["data"]["text"])
    return str(picture)


def html(report: Roofline) -> str:
    return picture_html(report.sentence, draw(report))


def figure(report: Roofline) -> go.Figure:
    return go.Figure(go.Scatter(x=report.points["intensity"], y=report.points["rate"]))


register(
    Face(
        name="roofline", title="Under the roof", order=25, short="roof",
        widget=RooflineView, svg=draw, html=html, figure=figure, stored=stored,
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
report = profile.roofline
print(type(report.widget()).__name__, "under the roof" in report.svg(), type(report.figure()).__name__)
print(sorted(report._repr_mimebundle_()))
linked = wb.views(profile, "roof", "memory")
print([type(each).__name__ for each in linked.children], linked.children[0].selection is linked.children[1].selection)
whole = wb.views(profile)
print(json.dumps([type(each).__name__ for each in whole.children]))
print(sys.modules["workbench.widgets.linked"].profile_view(profile).children[1].titles[:3])
profile.to("html", sys.argv[2])
"""


def shown_in(folder: Path) -> tuple[Path, list[str]]:
    """The page that a package with the view writes, and the lines that tell where the view is."""
    saved = handmade_profile().save(folder / "a.wbprofile")
    added = {"widgets/views/roofline.py": VIEW, "widgets/views/roofline.js": SCRIPT_OF_VIEW}
    return folder / "a.html", run(extended(folder, added), SCRIPT, str(saved), str(folder / "a.html"))
