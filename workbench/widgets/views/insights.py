"""Insights drawn: tips that show what they are about, how full the tiles are, and the largest things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.base.units import bytes_text, count_text
from workbench.profiler.report import records
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import ACCENT, BAD, CATEGORIES, paint
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.insights import Insights as Report

AT_PEAK = 200  # variables at the peak that are listed, the first of the report


def content(report: Report) -> dict[str, Any]:
    """Everything the view says: tips with what they are about, bins of tiles, and lists whose rows can be chosen."""
    profile, peak = report.profile, report.profile.peak
    at_peak = report.at_peak
    return {
        "sentence": report.sentence,
        "tips": [{"text": text, "about": about} for text, about in report.told],
        "capacity_bytes": int(profile.target["bytes_per_tile"]),
        "histogram": [[int(each) for each in row] for row in report.histogram.itertuples(index=False, name=None)],
        "highest_tiles": [
            {"ipu": int(row["ipu"]), "tile": int(row["tile"]), "bytes": int(row["needed_bytes"])}
            for row in records(report.highest_tiles)
        ],
        "code": [
            {
                "mark": paint(CATEGORIES, row["category"]),
                **{name: int(row[name]) for name in ("ipu", "tile", "bytes")},
            }
            for row in records(report.largest_code)
        ],
        "peak": {
            "ipu": int(peak.ipu),
            "tile": int(peak.tile),
            "step": int(peak.step),
            "categories": [
                {"mark": paint(CATEGORIES, name), "bytes": size} for name, size in report.peak_categories.items()
            ],
            "variables": [
                {"id": int(row["id"]), "name": str(row["name"]), "layer": str(row["layer"]), "bytes": int(row["bytes"])}
                for row in records(at_peak.head(AT_PEAK))
            ],
            "left": max(0, len(at_peak) - AT_PEAK),
        },
        "variables": [
            {
                "id": int(row["id"]),
                "bytes": int(row["bytes"]),
                "tiles": int(row["tiles"]),
                **{name: str(row[name]) for name in ("name", "layer", "used_by")},
            }
            for row in records(report.largest_variables)
        ],
    }


class InsightsView(View):
    """Cards; a row or the button of a tip chooses what it is about in every linked view."""

    _esm = assets.stub("views/insights.js")
    _css = assets.style("views/insights")

    def _begin(self) -> None:
        self.data = content(self._report)


def widget(report: Report, selection: Selection | None = None) -> InsightsView:
    """The view in a notebook."""
    return InsightsView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    return {"data": content(report), "buffer": b""}


def html(report: Report) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.largest_variables.drop(columns="id"), rows=10))


def draw(report: Report) -> str:
    """The stored picture: how many tiles need how much, and the tips below."""
    rows, capacity = report.histogram, int(report.profile.target["bytes_per_tile"])
    lines = [part for tip in report.tips for part in _lines(tip)]
    picture = svg.Picture(960, 270 + 18 * len(lines), "Tiles by the bytes they need")
    plot = svg.Box(96, 44, 848, 160)
    x = svg.Axis(0, int(rows["to_bytes"].max()), "bytes at the tile's fullest step", bytes_text, count=9, binary=True)
    y = svg.Axis(0, 1.08 * max(1, int(rows["tiles"].max())), "tiles", count_text, count=4)
    picture.axes(plot, x, y)
    for low, high, tiles in rows.itertuples(index=False, name=None):
        left, right = (plot.x + x.part(edge) * plot.w for edge in (low, high))
        tall = y.part(tiles) * plot.h
        fill = BAD if low >= capacity else ACCENT
        picture.box(left + 1, plot.y + plot.h - tall, max(1.0, right - left - 2), tall, fill=fill)
    for place, line in enumerate(lines):
        picture.text(16, 266 + 18 * place, line, "t")
    return str(picture)


def _lines(tip: str, wide: int = 140) -> list[str]:
    """A tip in lines of a picture."""
    import textwrap

    first, *others = textwrap.wrap(tip, wide) or [""]
    return [f"• {first}", *(f"   {line}" for line in others)]


def figure(report: Report) -> go.Figure:
    """The histogram as a plain plotly figure."""
    import plotly.graph_objects as go

    rows = report.histogram
    chart = go.Figure(go.Bar(x=(rows["from_bytes"] + rows["to_bytes"]) / 2, y=rows["tiles"], name="tiles"))
    chart.add_vline(x=int(report.profile.target["bytes_per_tile"]), line_dash="dash", annotation_text="capacity")
    chart.update_layout(title=report.sentence, xaxis_title="bytes at the tile's fullest step", yaxis_title="tiles")
    return chart


register(
    Face(
        name="insights",
        title="Insights",
        order=65,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
