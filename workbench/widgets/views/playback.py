"""The player drawn: two floor plans, what lies on each tile and what each does, as the program steps on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.causes import CAUSES as CAUSE_NAMES
from workbench.base.units import bytes_text, count_text
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.frames import BLOCK, block_number, block_of, frames, spread, whole_numbers
from workbench.widgets.kit.palette import CAUSES, RAMP
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import tile_map

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.playback import Playback as Report

STORED = 24  # frames of a page without a kernel
PICTURES = 6  # of the still picture


def payload(report: Report, places: Sequence[int]) -> tuple[dict[str, Any], bytes]:
    """Every position in a line each, and the frames at `places`."""
    profile, table = report.profile, report.to_pandas()
    names, layers = Names(), Names()
    there = set(table["cause"])
    causes = [each for each in CAUSE_NAMES if each in there]  # in the order of the legends of the other views
    columns: dict[str, tuple[str, Any]] = {
        "step": ("i4", table["step"]),
        "name": ("i4", names.indexes(table["name"])),
        "layer": ("i4", layers.indexes(table["layer"])),
        "cause": ("u1", [causes.index(each) for each in table["cause"]]),
        **{name: whole_numbers(table[name].to_numpy()) for name in _NUMBERS},
    }
    layout, buffer = pack(columns | frames(report, places))
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "ipu": report.ipu,
        "ipus": profile.ipus,
        "tiles": int(profile.arrays["always_live"].shape[1]),
        "position": report.position,
        "capacity_bytes": int(profile.target["bytes_per_tile"]),
        "block": BLOCK,
        "names": names.values,
        "layers": layers.values,
        "causes": [CAUSES[each] for each in causes],
        "cause_names": causes,
        "plan": tile_map.plan(profile.tile_map.of(ipu=report.ipu)),
        "ramp": list(RAMP),
    }
    return data, buffer


_NUMBERS = (
    *("cycles", "live_bytes", "fullest_tile", "fullest_tile_bytes"),
    *("computing_tiles", "sent_bytes", "received_bytes"),
)


class PlaybackView(View):
    """The player; the browser asks for the frames that it comes to, a block at a time."""

    _esm = assets.stub("views/playback.js")
    _css = assets.style("views/playback")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._follow, "ipu")

    def _begin(self) -> None:
        self._follow()

    def _follow(self, change: Any = None) -> None:
        """Another IPU's program, when one is chosen."""
        chosen = self.selection.ipu
        if chosen is not None and chosen != self._report.ipu and chosen < self._report.profile.ipus:
            self._report = self._report.of(ipu=chosen)
        if change is None or self.data["ipu"] != self._report.ipu:
            self.send_payload(*payload(self._report, [self._report.position] if len(self._report.steps) else []))

    def hear(self, message: Any) -> None:
        """`{"block": number, "ipu": n}` is answered with the frames of the block."""
        if not isinstance(message, dict) or "block" not in message or message.get("ipu") != self._report.ipu:
            return
        number = block_number(self._report, message["block"])
        if number is None:
            return
        layout, buffer = pack(frames(self._report, block_of(self._report, number)))
        self.send({"block": number, "ipu": self._report.ipu, "layout": layout}, buffers=[buffer])


def widget(report: Report, selection: Selection | None = None) -> PlaybackView:
    """The view in a notebook."""
    return PlaybackView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel: frames spread over the program."""
    data, buffer = payload(report, spread(report, STORED))
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the fullest positions first."""
    table = report.to_pandas().sort_values("live_bytes", ascending=False, kind="stable")
    return report_html(report, draw(report), table_html(table))


def draw(report: Report) -> str:
    """The stored picture: floor plans of the live bytes at places spread over the program, and the bytes over it."""
    picture = svg.Picture(960, 470, f"Playback of IPU {report.ipu}: live bytes of each tile as the program runs")
    places = spread(report, PICTURES)
    if not places:
        picture.text(16, 60, "Nothing runs there")
        return str(picture)
    live, table = report.live_at(places), report.to_pandas()
    column, row = report.profile.tile_map.of(ipu=report.ipu).places
    low, high = int(live.min()), int(live.max())
    wide, tall = 304, 110
    for number, (place, values) in enumerate(zip(places, live, strict=True)):
        x, y = 16 + number % 3 * (wide + 8), 64 + number // 3 * (tall + 36)
        grid = np.full((int(row.max()) + 1, int(column.max()) + 1), np.nan)
        grid[row, column] = values
        pixels = svg.ramp(np.where(np.isnan(grid), low, grid), low, high)
        pixels[np.isnan(grid)] = 0
        picture.image(x, y, wide, tall, svg.png(pixels))
        name = str(report.there.name[place])
        picture.text(x, y - 6, f"{place}: {name if len(name) < 40 else '…' + name[-38:]}")
    plot = svg.Box(96, 352, 848, 70)
    whole_bytes = table["live_bytes"].to_numpy()
    axis_x = svg.Axis(0, len(whole_bytes), f"place in the program of IPU {report.ipu}", count_text, count=9)
    axis_y = svg.Axis(0, max(1, int(whole_bytes.max()) * 1.05), "live", bytes_text, count=2, binary=True)
    picture.axes(plot, axis_x, axis_y)
    bins = np.linspace(0, len(whole_bytes), min(400, len(whole_bytes)) + 1).astype(int)
    tops = np.maximum.reduceat(whole_bytes, bins[:-1])
    picture.path(
        svg.stairs(plot, axis_x, axis_y, bins.tolist(), tops.tolist(), [0] * len(tops)),
        fill=CAUSES["compute"]["colour"],
    )
    return str(picture)


def figure(report: Report) -> go.Figure:
    """The floor plan of live bytes as a plotly figure with a slider over places of the program."""
    import plotly.graph_objects as go

    places = spread(report, PICTURES)
    plan = report.profile.tile_map.of(ipu=report.ipu)
    column, row = plan.places
    grids = []
    for values in report.live_at(places):
        grid = np.full((int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1), np.nan)
        grid[row, column] = values
        grids.append(grid)
    highest = max([1.0, *(float(np.nanmax(grid)) for grid in grids)])
    scale = [[place / (len(RAMP) - 1), colour] for place, colour in enumerate(RAMP)]
    chart = go.Figure()
    for number, grid in enumerate(grids):
        chart.add_heatmap(z=grid, zmin=0, zmax=highest, colorscale=scale, colorbar_title="bytes", visible=number == 0)
    steps = [
        {
            "label": str(place),
            "method": "update",
            "args": [{"visible": [each == number for each in range(len(places))]}],
        }
        for number, place in enumerate(places)
    ]
    chart.update_layout(
        title=report.sentence,
        yaxis_autorange="reversed",
        sliders=[{"steps": steps, "currentvalue": {"prefix": "place "}}] if steps else [],
    )
    return chart


register(
    Face(
        name="playback",
        title="Player",
        order=47,
        short="player",
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
