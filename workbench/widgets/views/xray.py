"""The X-ray drawn: addresses of one tile over the steps of its IPU, a rectangle for every life of every variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workbench.base.units import bytes_text, count_text, shown_text
from workbench.profiler.memory import live_bytes
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import CATEGORIES, paint
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile
    from workbench.profiler.reports.xray import Xray as Report

DRAWN = 4_000  # rectangles of a picture, the largest by area; the canvas draws all


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """What the canvas draws: every rectangle, and the step, name and layer of each position."""
    profile, frame = report.profile, report.rectangles
    names, layers, kinds, steps_names = Names(), Names(), Names(), Names()
    steps = live_bytes.positions(profile, report.ipu)
    row = np.searchsorted(profile.tables["steps"]["id"], steps)
    columns: dict[str, tuple[str, npt.ArrayLike]] = {
        "address": ("i4", frame["address"].to_numpy()),
        "bytes": ("i4", frame["bytes"].to_numpy()),
        "first": ("i4", frame["first"].to_numpy()),
        "last": ("i4", frame["last"].to_numpy()),
        "always": ("u1", frame["always_live"].to_numpy()),
        "variable": ("i4", ids_of(profile, frame)),
        "label": ("i4", names.indexes(labels_of(frame))),
        "layer": ("i4", layers.indexes(layers_of(profile, frame))),
        "kind": ("u1", kinds.indexes(frame["category"].astype(str).to_numpy())),
        "step": ("i4", steps),
        "step_name": ("i4", steps_names.indexes(profile.tables["steps"]["name"][row])),
    }
    layout, buffer = pack(columns)
    told = report.data
    data = {
        "sentence": report.sentence,
        "layout": layout,
        **{name: told[name] for name in ("ipu", "tile", "capacity_bytes", "regions", "gaps", "positions")},
        "with_gaps_bytes": told["total_with_gaps_bytes"],
        "ipus": profile.ipus,
        "labels": names.values,
        "layers": layers.values,
        "step_names": steps_names.values,
        "kinds": [paint(CATEGORIES, name) for name in kinds.values],
    }
    return data, buffer


def labels_of(frame: pd.DataFrame) -> list[str]:
    """What lies in each rectangle: a variable's name; of code its category as people call it."""
    rows: list[Any] = list(zip(frame["variable"], frame["label"].astype(str), strict=True))
    return [label if variable >= 0 else str(paint(CATEGORIES, label)["label"]) for variable, label in rows]


def ids_of(profile: Profile, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
    """The id of the variable of each rectangle; -1 for code."""
    rows = frame["variable"].to_numpy()
    ids = profile.tables["variables"]["id"]
    return np.where(rows < 0, -1, ids[np.maximum(rows, 0)] if len(ids) else -1).astype(np.int64)


def layers_of(profile: Profile, frame: pd.DataFrame) -> npt.NDArray[np.str_]:
    """The layer of each rectangle; "" for code."""
    rows, layers = frame["variable"].to_numpy(), profile.tables["variables"]["layer"]
    found = layers[np.maximum(rows, 0)] if len(layers) else np.full(len(rows), "")
    return np.where(rows < 0, "", found).astype(str)


class XrayView(View):
    """The X-ray canvas; follows the selection's IPU and tile, and shows the report's tile until one is chosen."""

    _esm = assets.stub("views/xray.js")
    _css = assets.style("views/xray")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._refresh, "tile", "ipu")

    def _begin(self) -> None:
        self._refresh()

    def _refresh(self, change: Any = None) -> None:
        ipu, tile = self._place()
        if change is None or (ipu, tile) != (self.data["ipu"], self.data["tile"]):
            self._report = self._report.of(ipu, tile)
            self.send_payload(*payload(self._report))

    def _place(self) -> tuple[int, int]:
        """The chosen tile; of a chosen IPU its fullest."""
        profile, chosen = self._report.profile, self.selection
        ipu = self._report.ipu if chosen.ipu is None else min(chosen.ipu, profile.ipus - 1)
        if chosen.tile is not None:
            return ipu, min(chosen.tile, int(profile.target["tiles_per_ipu"]) - 1)
        if ipu in (self._report.ipu, profile.peak.ipu):
            return ipu, self._report.tile if ipu == self._report.ipu else profile.peak.tile
        return ipu, int(np.argmax(profile.arrays["always_live"][ipu] + profile.arrays["live_peak"][ipu]))


def widget(report: Report, selection: Selection | None = None) -> XrayView:
    """The view in a notebook."""
    return XrayView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the largest first."""
    frame = report.rectangles.sort_values("bytes", ascending=False, kind="stable")
    return report_html(report, draw(report), table_html(frame.drop(columns="variable")))


def draw(report: Report) -> str:
    """The stored picture, SVG: rectangles by category, gaps shaded, the end of the tile dashed."""
    frame, told = report.rectangles, report.data
    kinds = list(dict.fromkeys(frame["category"].astype(str)))
    picture = svg.Picture(960, 420, f"X-ray of tile {report.tile:,}, IPU {report.ipu}")
    below = picture.legend(16, 46, [paint(CATEGORIES, kind) for kind in kinds], 944)
    plot = svg.Box(96, below + 6, 848, 354 - below)
    highest = max(int(told["total_with_gaps_bytes"]), *(frame["address"] + frame["bytes"]).tolist(), 1)
    drawn = highest > 0.35 * report.capacity_bytes
    x = svg.Axis(0, max(1, report.positions), f"place in the program of IPU {report.ipu}", count_text, count=9)
    y = svg.Axis(0, max(highest, report.capacity_bytes * drawn) * 1.04, "address", bytes_text, count=6, binary=True)
    picture.axes(plot, x, y)

    def box(first: float, last: float, low: float, high: float, kind: str = "", fill: str = "") -> None:
        left, top = plot.x + x.part(first) * plot.w, plot.y + plot.h - y.part(high) * plot.h
        picture.box(
            left,
            top,
            max(0.6, (x.part(last) - x.part(first)) * plot.w),
            max(0.4, (y.part(high) - y.part(low)) * plot.h),
            kind,
            fill,
        )

    for low, high in report.gaps:
        box(0, report.positions, low, high, "c")
    shown, cut = _largest(frame, DRAWN)
    rows: list[Any] = list(shown.itertuples(index=False))
    for row in rows:
        fill = picture.fill(paint(CATEGORIES, str(row.category)))
        box(row.first, row.last + 1, row.address, row.address + row.bytes, fill=fill)
    picture.capacity(plot, y, report.capacity_bytes, drawn=drawn)
    if cut:
        picture.text(944, 412, cut, anchor="end")
    return str(picture)


def _largest(frame: pd.DataFrame, most: int) -> tuple[pd.DataFrame, str]:
    """The rectangles that take most room in the picture, and how many of how many they are, "" for all."""
    area = frame["bytes"] * (frame["last"] - frame["first"] + 1)
    found = frame.loc[area.sort_values(ascending=False, kind="stable").index[:most]]
    return found, shown_text(len(found), len(frame), "rectangle", "with most bytes × places in the program")


def figure(report: Report) -> go.Figure:
    """The largest rectangles as a plain plotly figure."""
    import plotly.graph_objects as go

    shown, cut = _largest(report.rectangles, DRAWN // 2)
    chart = go.Figure()
    for kind, part in shown.groupby("category", sort=False):
        painted = paint(CATEGORIES, str(kind))
        chart.add_bar(
            name=painted["label"],
            x=part["first"] + (part["last"] - part["first"] + 1) / 2,
            width=part["last"] - part["first"] + 1,
            base=part["address"],
            y=part["bytes"],
            text=part["label"],
            marker_color=painted["colour"],
            textposition="none",
        )
    chart.add_hline(y=report.capacity_bytes, line_dash="dash", annotation_text="end of the tile")
    chart.update_layout(
        title="; ".join(part for part in (report.sentence, cut) if part),
        barmode="overlay",
        xaxis_title="place in the program",
        yaxis_title="address, bytes",
    )
    return chart


register(Face(name="xray", title="X-ray", order=45, widget=widget, svg=draw, html=html, figure=figure, stored=stored))
