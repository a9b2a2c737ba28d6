"""Liveness drawn: always-live under not-always-live bytes over program steps, and what is live at a chosen one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import traitlets

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.units import bytes_text, count_text
from workbench.profiler.memory import live_bytes
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import CATEGORIES, DIRECTIONS, GREY, RAMP, Paint, paint
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.liveness_view import LivenessView as Report

MAX_POINTS = 20_000
BINS = 120  # stretches of each IPU's program, where all IPUs are shown
ALWAYS: Paint = {"label": "always live", "colour": GREY, "pattern": "rising"}
LIVE: Paint = {"label": "comes and goes", "colour": "#26967d", "pattern": ""}


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """What the canvas draws: bytes by position of one tile, or of a whole IPU when the report has no tile."""
    names, layers, directions, kinds = Names(), Names(), Names(), Names()
    rows, size, lifetimes = _variables(report)
    tables = report.profile.tables
    columns: dict[str, tuple[str, npt.ArrayLike]] = {
        "live": ("f8", report.live_bytes),
        "step": ("i4", report.steps),
        "name": ("i4", names.indexes(report.step_names)),
        "layer": ("i2", layers.indexes(report.there.layer)),
        "direction": ("u1", directions.indexes(report.there.direction)),
        "variable_bytes": ("f8", size),
        **{f"interval_{name}": ("i4", values) for name, values in lifetimes.items()},
    }
    if report.tile is not None:
        columns["fullest"] = ("f8", report.worst_tile_bytes)
    described = {
        "id": tables["variables"]["id"][rows].tolist(),
        "name": [str(name) for name in tables["variables"]["name"][rows]],
        "layer": layers.indexes(tables["variables"]["layer"][rows]),
        "kind": kinds.indexes(tables["variables"]["kind"][rows]),
    }
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "ipu": report.ipu,
        "ipus": report.profile.ipus,
        "tile": report.tile,
        "per": f"on tile {report.tile:,} of IPU {report.ipu}" if report.tile is not None else f"on IPU {report.ipu}",
        "always_live_bytes": report.always_live_bytes,
        "capacity_bytes": capacity_bytes(report),
        "names": names.values,
        "layers": layers.values,
        "kinds": [paint(CATEGORIES, name) for name in kinds.values],
        "directions": [paint(DIRECTIONS, name) for name in directions.values],
        "colours": {"always": ALWAYS, "live": LIVE},
        "variables": described,
    }
    return data, buffer


def lanes(report: Report) -> tuple[dict[str, Any], bytes]:
    """What the canvas draws of all IPUs: a lane each, at most `BINS` stretches of its program, in each the most bytes
    that are live on all tiles together (`live`) and on one (`full`), and the place, step and name of that."""
    table, names = report.over_ipus, Names()
    found: dict[str, list[IntArray]] = {name: [] for name in ("first", "live", "full", "full_tile")}
    found |= {f"{measure}_{name}": [] for measure in ("live", "full") for name in ("at", "step", "name")}
    for ipu in range(report.profile.ipus):
        mine = report.of(ipu=ipu)
        count = len(mine.steps)
        edges = np.linspace(0, count, min(BINS, count) + 1).astype(np.int64)
        found["first"].append(edges[:-1])
        for measure, values in (("live", mine.live_bytes + mine.always_live_bytes), ("full", mine.worst_tile_bytes)):
            at = np.array([a + int(values[a:b].argmax()) for a, b in pairwise(edges.tolist())], dtype=np.int64)
            found[measure].append(values[at])
            found[f"{measure}_at"].append(at)
            found[f"{measure}_step"].append(mine.steps[at])
            found[f"{measure}_name"].append(np.array(names.indexes(mine.there.name[at]), dtype=np.int64))
            if measure == "full":
                found["full_tile"].append(mine.worst_tile[at])
    columns = {name: ("f8" if name == "live" else "i4", np.concatenate(values)) for name, values in found.items()}
    starts = np.cumsum([0, *(len(each) for each in found["first"])])
    layout, buffer = pack({"start": ("i4", starts), **columns})
    fullest = table.iloc[int(table["fullest_tile_bytes"].to_numpy().argmax())]
    sentence = (
        f"Modelled liveness of {len(table)} IPUs: the fullest tile is {fullest['fullest_tile']:,} of IPU "
        f"{fullest['ipu']}, with {bytes_text(fullest['fullest_tile_bytes'])} at place "
        f"{fullest['fullest_position']:,} of its program"
    )
    data = {
        "sentence": sentence,
        "layout": layout,
        "ipus": len(table),
        "lanes": table.to_dict("list"),
        "names": names.values,
        "capacity_bytes": int(report.profile.target["bytes_per_tile"]),
        "tiles": int(report.profile.target["tiles_per_ipu"]),
        "colours": {"always": ALWAYS, "live": LIVE},
        "ramp": list(RAMP),
    }
    return data, buffer


def capacity_bytes(report: Report) -> int:
    """Bytes of one tile, or of all tiles of an IPU."""
    target = report.profile.target
    return int(target["bytes_per_tile"]) * (1 if report.tile is not None else int(target["tiles_per_ipu"]))


def _variables(report: Report) -> tuple[IntArray, IntArray, dict[str, IntArray]]:
    """Rows of the variables that come and go there, their bytes there, and their lifetimes by place in the rows."""
    owner, first, last = live_bytes.intervals(report.profile, report.ipu)
    table = report.profile.tables["variables"]
    size = table["bytes"]
    if report.tile is not None:
        size = report.profile.arrays["per_tile"][table["bytes_index"], report.tile]
    here = size[owner] > 0
    rows, place = np.unique(owner[here], return_inverse=True)
    lifetimes = {"variable": place.astype(np.int64), "first": first[here], "last": last[here]}
    return rows, size[rows], lifetimes


class LivenessView(View):
    """The liveness canvas; follows the selection's IPU and tile, and shows the fullest tile until one is chosen.

    `mode`: "tile", "ipu" (all its tiles together) or "ipus" (a lane for each).
    """

    _esm = assets.stub("views/liveness_view.js")
    _css = assets.style("views/liveness_view")
    mode = traitlets.Enum(("tile", "ipu", "ipus"), "tile").tag(sync=True)

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._refresh, "tile", "ipu")
        self.observe(self._refresh, "mode")

    def _begin(self) -> None:
        if self.mode == "tile":
            self._refresh()
        else:
            self.mode = "tile"  # which sends it

    def _refresh(self, change: Any = None) -> None:
        if self.mode == "ipus":  # whatever is chosen
            if "lanes" not in self.data:
                self.send_payload(*lanes(self._report))
            return
        ipu, tile = place(self._report, self.selection)
        chosen = tile if self.mode == "tile" else None
        if change is None or "lanes" in self.data or (ipu, chosen) != (self.data["ipu"], self.data["tile"]):
            self.send_payload(*payload(self._report.of(ipu=ipu, tile=chosen)))


def place(report: Report, selection: Selection) -> tuple[int, int]:
    """The chosen IPU and tile; where none is chosen, the report's, else the fullest of that IPU."""
    profile = report.profile
    ipu = report.ipu if selection.ipu is None else min(selection.ipu, profile.ipus - 1)
    if selection.tile is not None:
        return ipu, min(selection.tile, int(profile.target["tiles_per_ipu"]) - 1)
    return first_place(report if ipu == report.ipu else report.of(ipu=ipu))


def first_place(report: Report) -> tuple[int, int]:
    """The IPU and tile shown until others are chosen: the report's, else the fullest tile of its IPU."""
    profile, ipu = report.profile, report.ipu
    if report.tile is not None:
        return ipu, report.tile
    if ipu == profile.peak.ipu:
        return ipu, profile.peak.tile
    full = profile.arrays["always_live"][ipu] + profile.arrays["live_peak"][ipu]
    return ipu, int(np.argmax(full))


def of_a_tile(report: Report) -> Report:
    """The report for the tile that is shown first."""
    ipu, tile = first_place(report)
    return report.of(ipu=ipu, tile=tile)


def widget(report: Report, selection: Selection | None = None) -> LivenessView:
    """The view in a notebook."""
    return LivenessView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(of_a_tile(report))
    return {"data": data, "buffer": buffer, "mode": "tile"}


def html(report: Report) -> str:
    """Picture and table."""
    shown = of_a_tile(report)
    table = table_html(shown.at(shown.peak_position)) if len(shown.steps) else ""
    return report_html(shown, draw(report), table)


def _coarse(values: IntArray, most: int) -> tuple[list[int], list[int]]:
    """At most `most` runs of positions and the highest value in each: edges (one more than values) and values."""
    if not len(values):
        return [0, 1], [0]
    width = max(1, ceil_div(len(values), most))
    starts = np.arange(0, len(values), width)
    return [*starts.tolist(), len(values)], np.maximum.reduceat(values, starts).tolist()


def draw(report: Report) -> str:
    """The stored picture, SVG."""
    shown = of_a_tile(report)
    live, always, capacity = shown.live_bytes, shown.always_live_bytes, capacity_bytes(shown)
    edges, tops = _coarse(live, 450)
    most = always + max(tops, default=0)
    drawn = capacity if most > 0.35 * capacity else 0
    picture = svg.Picture(960, 360, f"Liveness of tile {shown.tile:,}, IPU {shown.ipu}")
    below = picture.legend(16, 46, (LIVE, ALWAYS), 944)
    plot = svg.Box(96, below, 848, 300 - below)
    x = svg.Axis(
        0, len(live), f"place in the program of IPU {shown.ipu} (its steps in order, loops once)", count_text, count=9
    )
    y = svg.Axis(0, max(most, drawn) * 1.08, "bytes live on the tile", bytes_text, count=5, binary=True)
    picture.axes(plot, x, y)
    totals = [always + top for top in tops]
    picture.path(svg.stairs(plot, x, y, edges, totals, [always] * len(tops)), fill=picture.fill(LIVE))
    picture.path(svg.stairs(plot, x, y, edges, [always] * len(tops), [0] * len(tops)), fill=picture.fill(ALWAYS))
    picture.capacity(plot, y, capacity, drawn=bool(drawn))
    if len(live):
        _mark_peak(picture, plot, (x.part(shown.peak_position + 0.5), y.part(most)), f"peak {bytes_text(most)}")
    return str(picture)


def _mark_peak(picture: svg.Picture, plot: svg.Box, part: tuple[float, float], text: str) -> None:
    at, level = plot.x + part[0] * plot.w, plot.y + plot.h - part[1] * plot.h
    picture.raw(f'<circle class="t" cx="{svg.number(at)}" cy="{svg.number(level)}" r="3.5"/>')
    right = part[0] > 0.85
    picture.text(at + (-8 if right else 8), level - 5, text, "t b", "end" if right else "")


def figure(report: Report) -> go.Figure:
    """The same curve as a plain plotly figure."""
    import plotly.graph_objects as go

    shown = of_a_tile(report)
    edges, tops = _coarse(shown.live_bytes, MAX_POINTS // 2)
    chart = go.Figure()
    for painted, values in ((ALWAYS, [shown.always_live_bytes] * len(tops)), (LIVE, tops)):
        line = {"shape": "hv", "width": 0}
        chart.add_scatter(
            x=edges[:-1], y=values, name=painted["label"], stackgroup="bytes", line=line, fillcolor=painted["colour"]
        )
    chart.add_hline(y=capacity_bytes(shown), line_dash="dash", annotation_text="capacity")
    chart.update_layout(title=shown.sentence, xaxis_title="place in the program", yaxis_title="bytes live on the tile")
    return chart


register(
    Face(
        name="liveness_view",
        title="Liveness",
        order=40,
        short="liveness",
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
