"""The floor plan drawn: one number a tile, by colour, with the chosen tile's details beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, cycles_text, things_text
from workbench.errors import InputError
from workbench.profiler.places import ipu_of
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, frames, svg, tile_bytes
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import RAMP
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile
    from workbench.profiler.reports.playback import Playback
    from workbench.profiler.reports.tile_map import TileMap as Report

# osmarks/ipu-stack@ce7c7e94 ipu-target topology.rs: four lanes of tiles make one of the chip's columns (C600).
LANES = 4
STORED = 8  # frames of a page without a kernel


def plan(report: Report) -> dict[str, int]:
    """Columns and rows of the grid, and how many columns stand together."""
    column, row = report.places
    rows = int(row.max(initial=0)) + 1
    columns = int(column.max(initial=0)) + 1
    return {"columns": columns, "rows": rows, "lanes": LANES if columns > 2 * LANES else 1}


def busy_cycles(profile: Profile, ipus: Sequence[int]) -> IntArray:
    """Cycles each tile of `ipus` computes in one call: int64[ipus, tiles], the sum over steps of times x cycles."""
    steps, vectors = profile.tables["steps"], profile.arrays["per_tile"]
    found = np.zeros((len(ipus), vectors.shape[1]), dtype=np.int64)
    for row, ipu in enumerate(ipus):
        mine = (steps["ipu"] == ipu) & (steps["cycles_index"] > 0)
        weights = np.zeros(len(vectors), dtype=np.int64)
        np.add.at(weights, steps["cycles_index"][mine], steps["times"][mine])
        used = np.flatnonzero(weights)
        found[row] = weights[used] @ vectors[used]
    return found


def payload(
    report: Report,
    variable: int | None = None,
    more: Mapping[str, tuple[str, Any]] | None = None,
    ipu: int | None = None,
) -> tuple[dict[str, Any], bytes]:
    """Bytes by category, busy cycles, where one variable is kept, and more columns; of `ipu`, else the report's."""
    profile, ipu = report.profile, report.ipu if ipu is None else ipu
    shown = tile_bytes.held(profile, ipu)
    names, size = tile_bytes.by_category(profile.memory, shown)
    busy = busy_cycles(profile, shown)
    columns: dict[str, tuple[str, Any]] = {"bytes": ("i4", size.reshape(-1)), "cycles": ("f8", busy.reshape(-1))}
    about = tile_bytes.described(profile, ipu, names, "live at its fullest step")
    if variable is not None:
        table = profile.tables["variables"]
        kept = np.zeros((profile.ipus, about["tiles"]), dtype=np.int64)
        kept[table["ipu"][variable]] = profile.vector(table["bytes_index"][variable])
        columns["variable"] = ("i4", kept[shown].reshape(-1))
        about["variable"] = str(table["name"][variable])
    about |= _first(report, names)
    if about["first"] == "given":
        columns["given"] = ("f8", _given(report, shown).reshape(-1))
    layout, buffer = pack({**columns, **(more or {})})
    return {
        **about,
        "sentence": report.sentence,
        "layout": layout,
        "plan": plan(report),
        "ramp": list(RAMP),
        "block": frames.BLOCK,
    }, buffer


def _first(report: Report, names: list[str]) -> dict[str, Any]:
    """What is drawn first, `"first"`: the total, a category by its place, or what else the report was asked for."""
    if report.quantity == "total" or report.quantity in names:
        return {"first": "total" if report.quantity == "total" else str(names.index(report.quantity))}
    return {"first": "given", "given": {"what": report.what, "unit": report.unit}}


def _given(report: Report, ipus: Sequence[int]) -> IntArray:
    """What the report was asked for on the tiles of `ipus`, nothing on those that have no part in it."""
    found = np.zeros((len(ipus), len(report.values)), dtype=np.int64)
    for row, ipu in enumerate(ipus):
        if ipu in report.ipus:
            found[row] = report.of(report.quantity, report.item, ipu=ipu).values
    return found


def program(report: Report, message: Any) -> tuple[dict[str, Any], bytes] | None:
    """The frames that a page asks for, None for nonsense: `{"ipu": n, "block": n}`, or `"step": id, "position": n` for
    the block of a chosen step, and its place; of none, or of one that does not run there, of the fullest place."""
    profile = report.profile
    try:
        playback = profile.playback.of(ipu=ipu_of(profile, message.get("ipu")))
    except InputError:
        return None
    if not len(playback.steps):
        about, columns = frames.program(playback, [])
    else:
        at = None if "block" in message else _place(playback, message.get("step"), message.get("position"))
        number = frames.block_number(playback, message["block"] if at is None else at // frames.BLOCK)
        if number is None:
            return None
        about, columns = frames.program(playback, frames.block_of(playback, number))
        about |= {"block": number, "at": at}
    layout, buffer = pack(columns)
    return {**about, "layout": layout}, buffer


def _place(playback: Playback, step: Any, position: Any) -> int:
    """The position where it is one of the step; else the step's first, else the fullest."""
    places = np.flatnonzero(playback.steps == step).tolist() if type(step) is int else []
    if not places:
        return playback.position
    return position if type(position) is int and position in places else int(places[0])


class TileMapView(View):
    """The floor plan; a click or the arrows select a tile; a selected variable, or what tiles hold and do at a step of
    the program, can be shown on it."""

    _esm = assets.stub("views/tile_map.js")
    _css = assets.style("views/tile_map", "views/playback")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._refresh, "variable")
        self.follow(self._follow, "ipu")

    def _begin(self) -> None:
        self._ipu = self._report.ipu
        self._refresh()

    def hear(self, message: Any) -> None:
        """`{"program": {...}}` is answered with frames, see `program`; what nobody can ask is not answered."""
        asked = message.get("program") if isinstance(message, dict) else None
        told = program(self._report, asked) if isinstance(asked, dict) else None
        if told is not None:
            self.send({"program": told[0]}, buffers=[told[1]])

    def _follow(self, change: Any) -> None:
        """Send another IPU's tiles when it is chosen, where not all are sent at once."""
        chosen = self.selection.ipu
        if chosen is not None and chosen < self._report.profile.ipus and chosen not in self.data["held"]:
            self._ipu = chosen
            self._refresh()

    def _refresh(self, change: Any = None) -> None:
        self.send_payload(*payload(self._report, self.selection.variable, ipu=self._ipu))


def widget(report: Report, selection: Selection | None = None) -> TileMapView:
    """The view in a notebook."""
    return TileMapView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel: with frames spread over the program of its IPU."""
    playback = report.profile.playback.of(ipu=report.ipu)
    about, columns = frames.program(playback, frames.spread(playback, STORED))
    data, buffer = payload(report, more=columns)
    return {"data": {**data, "program": about}, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, highest first."""
    table = report.to_pandas().sort_values(report.unit, ascending=False, kind="stable")
    return report_html(report, draw(report), table_html(table))


def grid(report: Report) -> tuple[Any, Any]:
    """The numbers laid out as float64[rows, columns], and which cells are tiles."""
    column, row = report.places
    values = np.full((int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1), np.nan)
    values[row, column] = report.values
    return values, ~np.isnan(values)


def draw(report: Report) -> str:
    """The stored picture: the plan as a small PNG inside an SVG with its legend."""
    text = cycles_text if report.unit == "cycles" else bytes_text
    values, there = grid(report)
    low, high = (int(edge(report.values)) if len(report.values) else 0 for edge in (np.min, np.max))
    pixels = svg.ramp(np.where(there, values, low), low, high)
    pixels[~there] = 0
    side = min(848 / values.shape[1], 46.0)
    wide, tall = side * values.shape[1], min(side * 1.6, 46.0) * values.shape[0]
    picture = svg.Picture(960, int(tall + 132), f"Tile map of IPU {report.ipu}: {report.quantity.replace('_', ' ')}")
    picture.image(56, 44, wide, tall, svg.png(pixels))
    for place in range(0, values.shape[1], max(1, values.shape[1] // 16)):
        picture.text(56 + (place + 0.5) * side, 44 + tall + 16, f"{place * values.shape[0]:,}", anchor="middle")
    picture.text(56, 44 + tall + 34, "number of the column's first tile; tiles run down each column")
    picture.image(56, 44 + tall + 48, 320, 10, svg.png(svg.ramp(np.arange(64)[None, :], 0, 63)))
    ends = [text(low), text(high)]
    if low < high and ends[0] == ends[1]:  # to the last byte or cycle, where short texts read alike
        ends = [things_text(value, "cycle") if report.unit == "cycles" else f"{value:,} B" for value in (low, high)]
    picture.text(56, 44 + tall + 74, ends[0])
    picture.text(376, 44 + tall + 74, ends[1], anchor="end")
    picture.text(392, 44 + tall + 58, f"{report.unit} of each tile")
    return str(picture)


def figure(report: Report) -> go.Figure:
    """The same plan as a plain plotly figure."""
    import plotly.graph_objects as go

    values, _ = grid(report)
    scale = [[place / (len(RAMP) - 1), colour] for place, colour in enumerate(RAMP)]
    chart = go.Figure(go.Heatmap(z=values, colorscale=scale, colorbar_title=report.unit, xgap=1, ygap=1))
    chart.update_layout(title=report.sentence, xaxis_title="column", yaxis_title="row", yaxis_autorange="reversed")
    return chart


register(
    Face(
        name="tile_map",
        title="Tile map",
        order=30,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
