"""The roofline drawn: operators as points under the ceilings of compute, exchange and host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.units import count_text, shown_text, things_text
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import DIRECTIONS, paint
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.profiler.reports.roofline import Roofline as Report

DRAWN = 3_000  # points of a picture or a figure, those with most work
ENDLESS = 1e30  # the intensity of what exchanges nothing, for columns of numbers


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Every point, and the ceilings."""
    points, names, kinds = report.points, Names(), Names()
    columns: dict[str, tuple[str, Any]] = {
        "name": ("i4", names.indexes(points["name"])),
        "layer": ("i4", names.indexes(points["layer"])),
        "direction": ("u1", kinds.indexes(points["direction"])),
        "exchange": ("u1", (points["bound"] == "exchange").to_numpy()),
        "intensity": ("f8", np.minimum(points["intensity"].to_numpy(), ENDLESS)),
        "type": ("i4", names.indexes(points["type"])),
        **{name: ("f8", points[name].to_numpy()) for name in ("flops", "exchanged_bytes", "rate", "ceiling")},
    }
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "ceilings": report.ceilings,
        "peaks": report.peaks,
        "endless": ENDLESS,
        "strings": names.values,
        "directions": [paint(DIRECTIONS, name) for name in kinds.values],
    }
    return data, buffer


class RooflineView(View):
    """Points to choose from; the chosen one's layer is the selection's."""

    _esm = assets.stub("views/roofline.js")
    _css = assets.style("views/roofline")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))


def widget(report: Report, selection: Selection | None = None) -> RooflineView:
    """The view in a notebook."""
    return RooflineView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the most work first."""
    points = report.points.sort_values("flops", ascending=False, kind="stable")
    return report_html(report, draw(report), table_html(points))


def draw(report: Report) -> str:
    """The stored picture: both axes in powers of ten."""
    points, cut = _drawn(report)
    picture = svg.Picture(960, 400, "Roofline")
    kinds = list(dict.fromkeys(points["direction"].astype(str)))
    below = picture.legend(16, 46, [paint(DIRECTIONS, kind) for kind in kinds], 944) if kinds else 46
    ceilings, most = report.ceilings, max(report.peaks.values())
    ridge = most / ceilings["exchange"]
    across = np.log10([*points["intensity"], ridge / 10, ridge * 10])
    up = np.log10([*points["rate"], most / 100, most * 1.5])
    plot = svg.Box(96, below + 10, 848, 332 - below)
    x = svg.Axis(float(across.min()), float(across.max()), "FLOP per exchanged byte", _power, count=8)
    y = svg.Axis(float(up.min()), float(up.max()), "FLOP/s", _power, count=5)
    picture.axes(plot, x, y)

    def at(intensity: float, rate: float) -> tuple[float, float]:
        left = plot.x + x.part(float(np.log10(intensity))) * plot.w
        return left, plot.y + plot.h - y.part(float(np.log10(rate))) * plot.h

    begin = max(10.0**y.low / ceilings["exchange"], 10.0**x.low)
    for name, peak in report.peaks.items():
        corner = peak / ceilings["exchange"]
        corners = [at(begin, begin * ceilings["exchange"]), at(corner, peak), at(10.0**x.high, peak)]
        picture.path("M" + "L".join(f"{svg.number(left)} {svg.number(top)}" for left, top in corners), "k")
        left, top = corners[-1]
        picture.text(left - 4, top - 5, f"compute in {name}", anchor="end")
    rows: list[Any] = list(points.itertuples(index=False))
    for row in rows:
        left, top = at(row.intensity, row.rate)
        picture.box(left - 2.5, top - 2.5, 5, 5, fill=paint(DIRECTIONS, str(row.direction))["colour"], radius=2.5)
    if not rows:
        picture.text(110, plot.y + 20, "No operator with floating-point work exchanges bytes.")
    picture.text(944, 394, cut, anchor="end")
    return str(picture)


def _drawn(report: Report) -> tuple[pd.DataFrame, str]:
    """The points that have a place in the picture, and how many of how many these are; "" for all."""
    placed = report.points[np.isfinite(report.points["intensity"])]
    found = placed.sort_values("flops", ascending=False, kind="stable").head(DRAWN)
    endless = len(report.points) - len(placed)
    beside = f"{things_text(endless, 'operator')} without exchange {'has' if endless == 1 else 'have'} no place here"
    cut = shown_text(len(found), len(placed), "operator", "with most FLOP")
    return found, "; ".join(part for part in (cut, beside if endless else "") if part)


def _power(exponent: float) -> str:
    return count_text(10.0**exponent) if exponent >= 0 else f"{10.0**exponent:.2g}"


def figure(report: Report) -> go.Figure:
    """The points as a plain plotly figure under the ceilings of exchange and of compute in each type."""
    import plotly.graph_objects as go

    points, cut = _drawn(report)
    ceilings = report.ceilings
    chart = go.Figure()
    for kind, part in points.groupby("direction", sort=False):
        painted = paint(DIRECTIONS, str(kind))
        chart.add_scatter(
            x=part["intensity"],
            y=part["rate"],
            text=part["name"],
            mode="markers",
            name=painted["label"],
            marker_color=painted["colour"],
        )
    for name, peak in report.peaks.items():
        ridge = peak / ceilings["exchange"]
        edges = np.array([ridge / 1e3, ridge, ridge * 1e3])
        roof = np.minimum(edges * ceilings["exchange"], peak)
        chart.add_scatter(x=edges, y=roof, mode="lines", name=f"ceiling of exchange and of compute in {name}")
    title = "; ".join(part for part in (report.sentence, cut) if part)
    chart.update_layout(title=title, xaxis_title="FLOP per exchanged byte", yaxis_title="FLOP/s")
    chart.update_xaxes(type="log")
    chart.update_yaxes(type="log")
    return chart


register(
    Face(
        name="roofline",
        title="Roofline",
        order=75,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
