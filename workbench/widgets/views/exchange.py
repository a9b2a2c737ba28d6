"""An exchange drawn: the floor plan with an arrow for every tile that sends to the chosen one or receives from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, cycles_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.exchanges.arrows import Arrows
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import BAD, CAUSES, RAMP, Paint
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views import tile_map

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.exchange import Exchange as Report

WAYS: dict[str, Paint] = {
    "in": {"label": "comes in", "colour": "#cf7a1c", "pattern": ""},
    "out": {"label": "goes out (dashed)", "colour": "#3579bd", "pattern": "vertical"},
}
STORED_ARROWS = 6_000  # of a page without a kernel: 48 kB
STORED_TILES = 24
PICTURE_ARROWS = 60
FIGURE_ARROWS = 300
_NUMBERS = ("cycles", "total_cycles", "bytes_sent", "bytes_received", "senders", "receivers", "pieces", "times")
_OF_TILES = ("sent", "received", "shared", "pieces", "cycles")


def payload(report: Report, tiles: Sequence[int] | None = None) -> tuple[dict[str, Any], bytes]:
    """The steps of the IPU that move bytes, and all there is of the chosen one, with the arrows of `tiles`."""
    profile, table = report.profile, report.steps
    table = table[(table["ipu"] == report.ipu) | (table["step"] == report.step)]
    names, layers, causes = Names(), Names(), list(dict.fromkeys(table["cause"]))
    columns: dict[str, tuple[str, Any]] = {
        "step": ("i4", table["step"]),
        "name": ("i4", names.indexes(table["name"])),
        "layer": ("i4", layers.indexes(table["layer"])),
        "cause": ("u1", [causes.index(each) for each in table["cause"]]),
        **{name: _whole(table[name].to_numpy()) for name in _NUMBERS},
    }
    told, own = part(report, [report.tile] if tiles is None else tiles)
    layout, buffer = pack(columns | own)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "ipu": report.ipu,
        "movers": sorted({int(ipu) for ipu in report.steps["ipu"]}),  # IPUs with steps that move bytes
        "tiles": int(profile.arrays["always_live"].shape[1]),
        "names": names.values,
        "layers": layers.values,
        "causes": [CAUSES[each] for each in causes],
        "ways": WAYS,
        "plan": tile_map.plan(profile.tile_map.of(ipu=report.ipu)),
        "ramp": list(RAMP),
        "part": told,
    }
    return data, buffer


def part(report: Report, tiles: Sequence[int]) -> tuple[dict[str, Any], dict[str, tuple[str, Any]]]:
    """What is drawn of a step and of some of its tiles: JSON data and columns.

    `arrow_from`, `arrow_to`, `arrow_bytes` are all arrows with an end on one of the tiles.
    """
    columns = {f"tile_{name}": _whole(report.vectors[name]) for name in _OF_TILES}
    columns |= {f"part_{name}": _whole(np.asarray(values)) for name, values in report.costs.items()}
    found = report.arrows
    chosen = _with_end_on(found, tiles) if found is not None else np.zeros(0, np.int64)
    ends = (found.sender[chosen], found.receiver[chosen], found.bytes[chosen]) if found is not None else (chosen,) * 3
    columns |= {"arrow_from": ("i2", ends[0]), "arrow_to": ("i2", ends[1]), "arrow_bytes": _whole(ends[2])}
    can = bool(report.costs)
    told = {
        "step": report.step,
        "tile": report.tile,
        "busiest": report.busiest_tile,
        "untold": report.untold,
        "latency_cycles": report.latency_cycles if report.step >= 0 else 0,
        "known": [int(tile) for tile in tiles],
        "arrows": 0 if found is None else len(found.bytes),
        "explained": {str(tile): report.of(tile=tile).explained().tree() for tile in tiles[:1]} if can else {},
    }
    return told, columns


def _with_end_on(arrows: Arrows, tiles: Iterable[int]) -> IntArray:
    wanted = np.array(list(tiles), np.int64)
    found: IntArray = np.flatnonzero(np.isin(arrows.sender, wanted) | np.isin(arrows.receiver, wanted))
    return found


def _whole(values: IntArray) -> tuple[str, Any]:
    """A column of whole numbers in as few bytes as they need."""
    return ("i4" if np.abs(values).max(initial=0) < 2**31 else "f8"), values


class ExchangeView(View):
    """The view; the page asks for the arrows of a tile, and for another step, when they are chosen."""

    _esm = assets.stub("views/exchange.js")
    _css = assets.style("views/exchange")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.follow(self._follow, "ipu")

    def _begin(self) -> None:
        self.send_payload(*payload(self._on_chosen()))

    def _follow(self, change: Any) -> None:
        """The exchanges of another IPU, when one is chosen."""
        before = self._report
        if self._on_chosen() is not before:
            self.send_payload(*payload(self._report))

    def _on_chosen(self) -> Report:
        """The report, on the IPU that is chosen: there of the exchange that takes most cycles first."""
        report: Report = self._report
        chosen, steps = self.selection.ipu, report.steps
        here = steps[steps["ipu"] == chosen]
        if chosen is not None and chosen != report.ipu and len(here):
            between = here[here["cause"] == "exchange"]
            best = between if len(between) else here
            report = report.of(step=int(best["step"].iloc[int(best["total_cycles"].to_numpy().argmax())]))
        self._report = report
        return report

    def hear(self, message: Any) -> None:
        """`{"exchange": {"step": id, "tile": n}}` is answered with that part."""
        asked = message.get("exchange") if isinstance(message, dict) else None
        if not isinstance(asked, dict):
            return
        try:
            tile = asked.get("tile")
            self._report = self._report.of(step=whole("step", asked.get("step"), least=0), tile=tile)
        except InputError:
            return  # nothing that the page asks for
        told, columns = part(self._report, [self._report.tile])
        layout, buffer = pack(columns)
        self.send({"part": {**told, "layout": layout}}, buffers=[buffer])


def widget(report: Report, selection: Selection | None = None) -> ExchangeView:
    """The view in a notebook."""
    return ExchangeView(report, selection)


def kept_tiles(report: Report) -> list[int]:
    """Tiles of the step of which a page without a kernel knows the arrows: the chosen one, then those that take most
    cycles, as long as their arrows are not too many."""
    found, known = report.arrows, [report.tile]
    if found is None:
        return known
    tiles = len(report.vectors["sent"])
    ends = np.bincount(found.sender, minlength=tiles) + np.bincount(found.receiver, minlength=tiles)
    room = STORED_ARROWS - int(ends[report.tile])
    for tile in np.argsort(-report.vectors["cycles"], kind="stable").tolist():
        if tile == report.tile or not ends[tile]:
            continue
        room -= int(ends[tile])
        if room < 0 or len(known) >= STORED_TILES:
            break
        known.append(tile)
    return known


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel: the step, with the arrows of some of its tiles."""
    data, buffer = payload(report, kept_tiles(report))
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table: the arrows of the tile, most bytes first, or where there are none the steps."""
    table = report.to_pandas() if not report.untold else report.steps
    return report_html(report, draw(report), table_html(table))


def draw(report: Report) -> str:
    """The stored picture: the floor plan, by bytes from or to the tile, with its largest arrows, and its cycles."""
    picture = svg.Picture(960, 470, f"Exchange {report.data.get('name', '')}, step {report.step:,}")
    if report.step < 0:
        picture.text(16, 60, report.untold.capitalize())
        return str(picture)
    picture.legend(16, 46, WAYS.values(), 944)
    column, row = report.profile.tile_map.of(ipu=report.ipu).places
    values = _by_partner(report) if not report.untold else report.vectors["received"] + report.vectors["sent"]
    shape = (int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1)
    cells = np.full(shape, np.nan)
    cells[row, column] = values
    high = int(values.max(initial=0))
    pixels = svg.ramp(np.where(np.isnan(cells), 0, cells), 0, max(1, high))
    pixels[np.isnan(cells)] = 0
    wide, tall = min(880.0, 40.0 * shape[1]), min(250.0, 40.0 * shape[0])
    picture.image(16, 64, wide, tall, svg.png(pixels))
    cell = (wide / shape[1], tall / shape[0])
    centre = [(16 + (x + 0.5) * cell[0], 64 + (y + 0.5) * cell[1]) for x, y in zip(column, row, strict=True)]
    _arrows(picture, report, centre)
    _cost_bars(picture, report, 64 + tall + 40)
    what = "bytes to or from the tile" if not report.untold else "bytes each tile sends and receives"
    said = (f"{what}, at most {bytes_text(high)}", report.untold, cut_text(report, PICTURE_ARROWS))
    picture.text(16, 64 + tall + 18, "; ".join(part for part in said if part))
    return str(picture)


def cut_text(report: Report, most: int) -> str:
    """How many arrows of how many are drawn where at most so many are of each way; "" where all are."""
    counts = {words: len(report.partners(way)) for way, words in (("in", "that come in"), ("out", "that go out"))}
    if max(counts.values()) <= most:
        return ""
    told = " and ".join(f"{min(count, most):,} of {count:,} {words}" for words, count in counts.items() if count)
    return f"arrows: {told} are shown, those with most bytes"


def _by_partner(report: Report) -> IntArray:
    """Bytes between the tile and every other: int64[tiles]."""
    table = report.to_pandas()
    return np.bincount(table["tile"], table["bytes"], len(report.vectors["sent"])).astype(np.int64)


def _arrows(picture: svg.Picture, report: Report, centre: Sequence[tuple[float, float]]) -> None:
    most = report.to_pandas()["bytes"].max() if not report.untold else 0
    for way, paint in WAYS.items():
        table = report.partners(way).head(PICTURE_ARROWS)
        for tile, size in zip(table["tile"].tolist(), table["bytes"].tolist(), strict=True):
            ends = (centre[tile], centre[report.tile]) if way == "in" else (centre[report.tile], centre[tile])
            (x0, y0), (x1, y1) = ends
            wide = 0.6 + 2.4 * (size / most) ** 0.5
            path = f"M{svg.number(x0)} {svg.number(y0)}L{svg.number(x1)} {svg.number(y1)}"
            dashes = ' stroke-dasharray="5 2"' if way == "out" else ""
            picture.raw(
                f'<path d="{path}" fill="none" stroke="{paint["colour"]}" stroke-width="{svg.number(wide)}"{dashes}/>'
            )
    x, y = centre[report.tile]
    picture.raw(
        f'<path d="M{svg.number(x - 5)} {svg.number(y - 5)}h10v10h-10Z" fill="none" stroke="{BAD}" stroke-width="2"/>'
    )


PARTS = {
    "receiving": "receiving its bytes",
    "sending": "sending its bytes",
    "control": "control of its pieces",
    "staged": "or staged in buffers",
}


def _cost_bars(picture: svg.Picture, report: Report, top: float) -> None:
    cost = report.cost
    if not cost:
        picture.text(16, top + 12, f"Cycles of the tile: {cycles_text(report.cycles)}")
        return
    picture.text(16, top + 6, f"Tile {report.tile} takes {cycles_text(report.cycles)}, decided by {report.decided_by}")
    most = max(1, *(cost[name] for name in PARTS))
    for place, (name, words) in enumerate(PARTS.items()):
        y = top + 18 + 17 * place
        picture.text(150, y + 10, words, anchor="end")
        picture.box(158, y, max(1.0, 560 * cost[name] / most), 12, fill=CAUSES["exchange"]["colour"])
        picture.text(166 + 560 * cost[name] / most, y + 10, cycles_text(cost[name]))


def figure(report: Report) -> go.Figure:
    """The floor plan of bytes to and from the tile as a plotly figure, its largest arrows as lines."""
    import plotly.graph_objects as go

    chart = go.Figure()
    if report.step >= 0:
        column, row = report.profile.tile_map.of(ipu=report.ipu).places
        values = _by_partner(report) if not report.untold else report.vectors["received"] + report.vectors["sent"]
        cells = np.full((int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1), np.nan)
        cells[row, column] = values
        scale = [[place / (len(RAMP) - 1), colour] for place, colour in enumerate(RAMP)]
        chart.add_heatmap(z=cells, colorscale=scale, colorbar_title="bytes", xgap=1, ygap=1)
        for way, paint in WAYS.items():
            table = report.partners(way).head(FIGURE_ARROWS)
            ends = [(column[tile], row[tile]) for tile in table["tile"].tolist()]
            here = (column[report.tile], row[report.tile])
            x = [part for end in ends for part in (end[0], here[0], None)]
            y = [part for end in ends for part in (end[1], here[1], None)]
            chart.add_scatter(x=x, y=y, mode="lines", line={"color": paint["colour"], "width": 1}, name=paint["label"])
    title = "; ".join(part for part in (report.sentence, cut_text(report, FIGURE_ARROWS)) if part)
    chart.update_layout(title=title, yaxis_autorange="reversed", xaxis_title="column", yaxis_title="row")
    return chart


register(
    Face(
        name="exchange",
        title="Exchange",
        order=48,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
