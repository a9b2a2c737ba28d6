"""A report and its view of two files beside the package, and what shows with them."""

from __future__ import annotations

from pathlib import Path

from tests.extended import extended, run
from tests.profiler.added import REPORT
from tests.profiler.handmade import handmade_profile

VIEW = '''
"""The longest steps, as one number."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from workbench.profiler.reports.longest import Longest
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, picture_html


class LongestView(View):
    """The number."""

    _esm = assets.stub("views/longest.js")
    _css = assets.style("views/longest")

    def _begin(self) -> None:
        self.data = stored(self._report)["data"]


def stored(report: Longest) -> dict[str, Any]:
    return {"data": {"text": f"{len(report.to_pandas())} longest steps"}, "buffer": b""}


def draw(report: Longest) -> str:
    picture = svg.Picture(200, 40, "Longest")
    picture.text(10, 20, stored(report)["data"]["text"])
    return str(picture)


def html(report: Longest) -> str:
    return picture_html(report.sentence, draw(report))


def figure(report: Longest) -> go.Figure:
    return go.Figure(go.Bar(x=report.to_pandas()["name"], y=report.to_pandas()["cycles"]))


register(
    Face(
        name="longest", title="Longest", order=25, short="long",
        widget=LongestView, svg=draw, html=html, figure=figure, stored=stored,
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
report = profile.longest
print(type(report.widget()).__name__, "longest steps" in report.svg(), type(report.figure()).__name__)
print(sorted(report._repr_mimebundle_()))
linked = wb.views(profile, "long", "memory")
made = [linked.view(name) for name in linked.names]
print([type(each).__name__ for each in made], made[0].selection is made[1].selection)
whole = wb.views(profile)
print(json.dumps([type(whole.view(name)).__name__ for name in whole.names]))
print(sys.modules["workbench.widgets.linked"].profile_view(profile).children[1].titles[:3])
profile.to("html", sys.argv[2])
"""


def shown_in(folder: Path) -> tuple[Path, list[str]]:
    """The page that a package with the view writes, and the lines that tell where the view is."""
    saved = handmade_profile().save(folder / "a.wbprofile")
    added = {
        "profiler/reports/longest.py": REPORT,
        "widgets/views/longest.py": VIEW,
        "widgets/views/longest.js": SCRIPT_OF_VIEW,
    }
    return folder / "a.html", run(extended(folder, added), SCRIPT, str(saved), str(folder / "a.html"))
