"""Memory drawn: bytes over the tiles of an IPU, stacked by category, under the capacity line."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, count_text
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg, tile_bytes
from workbench.widgets.kit.base import View, picture_html, table_html
from workbench.widgets.kit.palette import CATEGORIES, paint
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.memory import Memory as Report

MAX_POINTS = 20_000
_MEASURED = {"peak": "live at its fullest step", "allocated": "allocated"}


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Bytes by category, IPU and tile, and how the categories are painted."""
    names, size = tile_bytes.by_category(report)
    layout, buffer = pack({"bytes": ("i4", size.reshape(-1))})
    about = tile_bytes.described(report.profile, report.ipu, names, _MEASURED[report.measure])
    return {**about, "sentence": report.sentence, "layout": layout}, buffer


class MemoryView(View):
    """The memory canvas; a click selects a tile, the legend hides a category."""

    _esm = assets.stub("views/memory.js")
    _css = assets.style("views/memory")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.send_payload(*payload(report))


def widget(report: Report, selection: Selection | None = None) -> MemoryView:
    """The view in a notebook."""
    return MemoryView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, fullest tiles first."""
    table = report.to_pandas().sort_values("total_bytes", ascending=False, kind="stable")
    return picture_html(report.sentence, draw(report), table_html(table))


def draw(report: Report) -> str:
    """The stored picture, SVG; of many tiles each pixel column shows the fullest."""
    by_category, total = report.by_category, report.total
    chosen = _fullest_of_each(total, 424)
    capacity = int(report.profile.target["bytes_per_tile"])
    most = int(total.max(initial=0))
    drawn = most > 0.35 * capacity
    paints = [paint(CATEGORIES, name) for name in by_category]
    picture = svg.Picture(960, 380, f"Memory over the tiles of IPU {report.ipu}")
    below = picture.legend(16, 46, paints, 944) + 6
    plot = svg.Box(96, below, 848, 320 - below)
    x = svg.Axis(0, len(total), f"tile of IPU {report.ipu}", count_text, count=9)
    y = svg.Axis(0, max(most, capacity if drawn else 0) * 1.08, "bytes per tile", bytes_text, count=5, binary=True)
    picture.axes(plot, x, y)
    base = np.zeros(len(chosen), dtype=np.int64)
    edges = np.linspace(0, len(total), len(chosen) + 1)
    for colours, values in zip(paints, by_category.values(), strict=True):
        top = base + values[chosen]
        picture.path(svg.stairs(plot, x, y, edges.tolist(), top.tolist(), base.tolist()), fill=picture.fill(colours))
        base = top
    picture.capacity(plot, y, capacity, drawn=drawn)
    return str(picture)


def _fullest_of_each(total: IntArray, columns: int) -> IntArray:
    """The fullest tile of each of at most `columns` equal runs of tiles."""
    edges = np.linspace(0, len(total), min(columns, len(total)) + 1).astype(np.int64)
    return np.array([a + int(np.argmax(total[a:b])) for a, b in pairwise(edges.tolist())], dtype=np.int64)


def figure(report: Report) -> go.Figure:
    """The same bars as a plain plotly figure; of more points than a figure may have, the fullest tiles stay."""
    import plotly.graph_objects as go

    most = MAX_POINTS // max(1, len(report.by_category))
    tiles = np.sort(np.argsort(-report.total, kind="stable")[:most])
    chart = go.Figure()
    for name, values in report.by_category.items():
        colours = paint(CATEGORIES, name)
        chart.add_bar(x=tiles, y=values[tiles], name=colours["label"], marker_color=colours["colour"])
    chart.add_hline(y=int(report.profile.target["bytes_per_tile"]), line_dash="dash", annotation_text="capacity")
    chart.update_layout(
        title=report.sentence,
        barmode="stack",
        bargap=0,
        xaxis_title=f"tile of IPU {report.ipu}",
        yaxis_title="bytes per tile",
    )
    return chart


register(
    Face(
        name="memory",
        title="Memory",
        order=20,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
