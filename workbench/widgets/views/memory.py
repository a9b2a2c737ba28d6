"""Memory drawn: bytes over the tiles of an IPU, stacked by category, under the capacity line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, count_text
from workbench.errors import InputError
from workbench.profiler.places import ipu_of, variable_of
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg, tile_bytes
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import CATEGORIES, GAPS, LIVENESS, MICRO_BATCHES, REGIONS, Paint, paint
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.memory import Memory as Report

MAX_POINTS = 20_000
_MEASURED = {"peak": "live at its fullest step", "allocated": "allocated"}


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Bytes by category, IPU and tile, and how the categories are painted."""
    profile = report.profile
    shown = tile_bytes.held(profile, report.ipu)
    names, size = tile_bytes.by_category(report, shown)
    lives = np.stack([profile.arrays["always_live"][shown], profile.arrays["live_peak"][shown]])
    places = profile.tile_map.places
    layout, buffer = pack(
        {"bytes": ("i4", size.reshape(-1)), "liveness": ("i4", lives.reshape(-1)), "row": ("i4", places[1])}
    )
    about = tile_bytes.described(report.profile, report.ipu, names, _MEASURED[report.measure])
    splits = SPLITS | ({"category": "category as allocated"} if report.measure == "allocated" else {})
    more = {"splits": splits, "asked_for": list(ASKED_FOR), "liveness": list(LIVENESS.values()), "most": VARIABLES}
    said = [report.of(ipu=ipu).sentence for ipu in shown]
    return {**about, **more, "sentence": report.sentence, "sentences": said, "layout": layout}, buffer


SPLITS = {
    "category": "category, at each tile's fullest step",
    "liveness": "liveness: always, and at most besides",
    "allocated": "category as allocated, with gaps",
    "region": "region of the tile's memory, as allocated",
    "variables": "variables that were chosen",
}
ASKED_FOR = ("allocated", "region", "variables")  # what has to be worked out, or chosen, is sent when it is asked for
VARIABLES = 12  # together


def parts(report: Report, split: str, variables: Sequence[int] = ()) -> list[tuple[Paint, IntArray]]:
    """What a tile's bar is made of, from below: how it is painted, and int64[tiles] of bytes on the report's IPU."""
    if split == "variables":
        return [_variable(report, variable, place) for place, variable in enumerate(variables)]
    if split == "liveness":
        return [(paint(LIVENESS, name), values) for name, values in report.by_liveness.items()]
    if split == "region":
        return [(paint(REGIONS, name), values) for name, values in report.by_region.items()]
    found = report.with_gaps if split == "allocated" else report.by_category
    return [(GAPS if name == "gaps" else paint(CATEGORIES, name), values) for name, values in found.items()]


def _variable(report: Report, variable: int, place: int) -> tuple[Paint, IntArray]:
    table, profile = report.profile.tables["variables"], report.profile
    row = int(table["bytes_index"][variable]) if int(table["ipu"][variable]) == report.ipu else 0  # 0: no bytes
    colour = MICRO_BATCHES[place % len(MICRO_BATCHES)]
    return {"label": str(table["name"][variable]), "colour": colour, "pattern": ""}, profile.vector(row)


def split_of(report: Report, split: str, variables: Sequence[int] = ()) -> tuple[dict[str, Any], bytes]:
    """The parts of one IPU as they are sent."""
    found = parts(report, split, variables)
    values = [amount for _, amount in found]
    layout, buffer = pack({"bytes": ("i4", np.concatenate(values) if values else [])})
    return {"name": split, "ipu": report.ipu, "paints": [painted for painted, _ in found], "layout": layout}, buffer


class MemoryView(View):
    """The memory canvas; a click selects a tile, the legend hides a part. Splits that take work are sent when asked."""

    _esm = assets.stub("views/memory.js")
    _css = assets.style("views/memory")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._follow, "ipu")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))

    def _follow(self, change: Any) -> None:
        """Send another IPU's tiles when it is chosen, where not all are sent at once."""
        chosen = self.selection.ipu
        if chosen is not None and chosen < self._report.profile.ipus and chosen not in self.data["held"]:
            self._report = self._report.of(ipu=chosen)
            self.send_payload(*payload(self._report))

    def hear(self, message: Any) -> None:
        """`{"split": name, "ipu": n, "variables": [ids], "asked": n}`; what nobody can ask is not answered."""
        asked = message if isinstance(message, dict) else {}
        if asked.get("split") not in ASKED_FOR:
            return
        profile, given = self._report.profile, asked.get("variables", [])
        try:
            ipu = ipu_of(profile, asked.get("ipu"))
            variables = [variable_of(profile, each) for each in (given if isinstance(given, list) else [])[:VARIABLES]]
        except InputError:
            return
        data, buffer = split_of(self._report.of(ipu=ipu), asked["split"], variables)
        self.send({"split": data, "asked": asked.get("asked")}, buffers=[buffer])


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
    return report_html(report, draw(report), table_html(table))


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
