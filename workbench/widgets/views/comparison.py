"""A comparison drawn: changes of the headline numbers, the earlier outline over the later picture, rows by change.

Both sides are sent as they are in the two profiles; every change that stands on the page is later minus earlier of
what was sent, so that swapping the sides flips every sign.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.units import bytes_text, count_text
from workbench.profiler.advice.compare import AMOUNTS, KEYS, TABLES, Comparison, words_of
from workbench.profiler.advice.why import THROUGH
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.detail import BUSY, Window, bins_of
from workbench.widgets.kit.palette import ACCENT, CAUSES
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views.tile_map import plan

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile

LESS, MORE = ACCENT, "#cf7a1c"
SHOWN = 1_000  # rows of a table that are sent, the largest changes; .table(name) has all
COLUMNS = 480  # steps of a stored picture
MOST_LANES = 8  # IPUs whose traces are drawn at once; of more, the chosen one
LANE_BINS = 600  # of the longer program
# What a headline counts, and which way is better.
HEADS: Mapping[str, tuple[str, str, int]] = {
    "max_tile_bytes": ("Fullest tile", "bytes", -1),
    "margin_bytes": ("Margin", "bytes", 1),
    "total_cycles": ("Cycles of a call", "cycles", -1),
    "seconds": ("Time of a call", "seconds", -1),
    "samples_per_second": ("Samples a second", "count", 1),
    "fragmentation": ("Gaps on the fullest tile", "share", -1),
}
OF_A_CALL = ("total_cycles", "seconds")
_STATUS = ("changed", "added", "removed")


def payload(report: Comparison, place: int = 1, ipu: int = 0) -> tuple[dict[str, Any], bytes]:
    """Two of the profiles, side by side: headlines, bytes over tiles and steps of one IPU, and the tables."""
    sides = (report.profiles[0], report.profiles[place])
    names = Names()
    columns: dict[str, tuple[str, Any]] = {}
    for side, profile in zip("ab", sides, strict=True):
        columns |= {f"{side}_{name}": column for name, column in _side(profile, ipu, names).items()}
    lanes = _lanes(sides, ipu, columns)
    tables = {name: _table(report, name, place, columns, names) for name in TABLES}
    layout, buffer = pack(columns)
    largest = max(sides, key=lambda each: each.arrays["always_live"].shape[1])
    labels = (report.numbered[0], report.numbered[place]) if report.labels else ()
    there = Comparison(profiles=sides, labels=labels)
    back = Comparison(profiles=sides[::-1], labels=labels[::-1])
    data = {
        "sentences": [there.sentence, back.sentence],
        "layout": layout,
        "names": [report.names[0], report.names[place]],
        "labels": [report.numbered[0], report.numbered[place]],
        "fits": [each.fits for each in sides],
        "heads": _heads(report, place),
        "place": place,
        "others": list(report.numbered[1:]),
        "ipu": ipu,
        "ipus": max(each.ipus for each in sides),
        "capacity_bytes": [int(each.target["bytes_per_tile"]) for each in sides],
        "plan": plan(largest.tile_map),
        "lanes": lanes,
        "tables": tables,
        "why": _why(report, place),
        "options": [
            [str(row["option"]), str(row["before"]), str(row["after"])]
            for row in report.data["options"]
            if row["profile"] == place
        ],
        "strings": names.values,
        "paint": {"less": LESS, "more": MORE},
    }
    return data, buffer


def _lanes(sides: tuple[Profile, Profile], ipu: int, columns: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """What the IPUs of both do over time, and the cycles of each by cause.

    The parts of each bin by cause go into `columns`, u1[ipus, bins, causes] with 255 for all of it; the bins of both
    are as long, so that one axis holds them.
    """
    most = max(each.ipus for each in sides)
    shown = list(range(most)) if most <= MOST_LANES else [ipu]
    each = max(1, math.ceil(max(profile.total_cycles for profile in sides) / LANE_BINS))
    spent: dict[str, list[dict[str, int]]] = {}
    for side, profile in zip("ab", sides, strict=True):
        mine = [number for number in shown if number < profile.ipus]
        bins = max(1, math.ceil(profile.total_cycles / each))
        window = Window(first=0, last=bins * each, bins=bins, least=math.inf)
        found = bins_of(profile, window, mine)
        parts = np.clip(np.rint(found / window.each * 255), 0, 255)
        columns[f"{side}_lanes"] = ("u1", parts.reshape(-1))
        table = profile.tables["cycle_breakdown"]
        rows = zip(*(table[name].tolist() for name in ("ipu", "cause", "cycles")), strict=True)
        by_ipu: list[dict[str, int]] = [{} for _ in range(profile.ipus)]
        for number, cause, cycles in rows:
            by_ipu[number][cause] = by_ipu[number].get(cause, 0) + cycles
        spent[side] = [by_ipu[number] for number in mine]
    return {
        "ipus": shown,
        "each": each,
        "totals": [profile.total_cycles for profile in sides],
        "clocks": [float(profile.target["clock_hz"]) for profile in sides],
        "causes": [CAUSES[cause] for cause in BUSY],
        "paints": CAUSES,
        "spent": spent,
    }


def tile_bytes(profile: Profile, ipu: int) -> IntArray:
    """Bytes each tile needs at its own fullest step: int64[tiles]; none where there is no such IPU."""
    if ipu >= profile.ipus:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(profile.arrays["always_live"][ipu] + profile.arrays["live_peak"][ipu], dtype=np.int64)


def _side(profile: Profile, ipu: int, names: Names) -> dict[str, tuple[str, Any]]:
    """Bytes of the tiles, and of the fullest tile at each place of the program with that place's step."""
    tiles = tile_bytes(profile, ipu)
    if not len(tiles):
        nothing: list[int] = []
        return {"tiles": ("i4", tiles), "worst": ("i4", nothing), "step": ("i4", nothing), "name": ("i4", nothing)}
    there = profile.liveness_view.of(ipu=ipu)
    return {
        "tiles": ("i4", tiles),
        "worst": ("i4", there.worst_tile_bytes),
        "step": ("i4", there.steps),
        "name": ("i4", names.indexes(there.step_names)),
    }


def _heads(report: Comparison, place: int) -> list[dict[str, Any]]:
    rows = [row for row in report.data["headlines"] if row["profile"] == place]
    calls = {side: report.profiles[at].meta.get("samples_per_call") or 0 for side, at in (("a", 0), ("b", place))}
    unlike = all(calls.values()) and calls["a"] != calls["b"]
    found = []
    for row in rows:
        label, unit, better = HEADS[row["quantity"]]
        about: dict[str, Any] = {"quantity": row["quantity"], "label": label, "unit": unit, "better": better}
        if unlike and row["quantity"] in OF_A_CALL:  # a longer call of more samples is neither better nor worse
            about |= {"better": 0, "samples": calls}
        found.append({**about, "a": row["before"], "b": row["after"]})
    return found


def _table(
    report: Comparison, name: str, place: int, columns: dict[str, tuple[str, Any]], names: Names
) -> dict[str, Any]:
    """Put the rows of a table into `columns`; what the browser has to know of them."""
    frame = report.table(name)
    frame = frame[frame["profile"] == place]
    shown = frame.head(SHOWN)
    for key in KEYS[name]:
        texts = [str(value) for value in shown[key]]
        columns[f"{name}_{key}"] = ("i4", names.indexes(texts))
    columns[f"{name}_status"] = ("u1", [_STATUS.index(each) for each in shown["status"]])
    for amount in AMOUNTS[name]:
        columns[f"{name}_{amount}_a"] = ("f8", shown[f"{amount} before"].to_numpy())
        columns[f"{name}_{amount}_b"] = ("f8", shown[f"{amount} after"].to_numpy())
    return {
        "keys": list(KEYS[name]),
        "amounts": list(AMOUNTS[name]),
        "rows": len(shown),
        "left": len(frame) - len(shown),
    }


def _why(report: Comparison, place: int) -> list[list[Any]]:
    """Layer, cause or category, unit, change, and the change that each part comes of."""
    rows = [row for row in report.data["why"] if row["profile"] == place]
    return [
        [
            row["layer"],
            words_of(row["cause"] or row["category"]),
            unit,
            float(row[unit]),
            row["origin"] or THROUGH.get(row["through"], ""),
        ]
        for row in rows
        for unit in ("cycles", "bytes")
        if row["cause" if unit == "cycles" else "category"]
    ]


class ComparisonView(View):
    """The pictures of two profiles over each other; the browser swaps them, and asks for another pair or IPU."""

    _esm = assets.stub("views/comparison.js")
    _css = assets.style("views/comparison")

    def _begin(self) -> None:
        self.show(1, self._report.profiles[0].peak.ipu)

    def show(self, place: int, ipu: int) -> None:
        """Draw the profile at a place of the comparison, from 1, against the first, on one IPU."""
        self.send_payload(*payload(self._report, place, ipu))

    def hear(self, message: Any) -> None:
        """Show what a browser asks for, `{"place", "ipu"}`; what is no such thing is not heard."""
        asked = message if isinstance(message, dict) else {}
        place, ipu = asked.get("place"), asked.get("ipu")
        if type(place) is not int or type(ipu) is not int or not 1 <= place < len(self._report.profiles):
            return
        most = max(self._report.profiles[0].ipus, self._report.profiles[place].ipus)
        self.show(place, max(0, min(most - 1, ipu)))


def widget(report: Comparison, selection: Selection | None = None) -> ComparisonView:
    """The view in a notebook."""
    return ComparisonView(report, selection)


def stored(report: Comparison) -> dict[str, Any]:
    """State of the view for a page without a kernel: the first two profiles, on the IPU of the first one's peak."""
    data, buffer = payload(report, 1, report.profiles[0].peak.ipu)
    return {"data": data, "buffer": buffer}


def html(report: Comparison) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.headlines, rows=24))


def draw(report: Comparison) -> str:
    """The stored picture: bytes of the fullest tile through each program, and the change of every tile."""
    first, other = report.profiles[:2]
    ipu = first.peak.ipu
    picture = svg.Picture(960, 470, f"{report.names[1]} against {report.names[0]}, IPU {ipu}")
    sizes = [_through(each, ipu) for each in (first, other)]
    top = max(int(each.max(initial=1)) for each in sizes)
    plot = svg.Box(96, 62, 848, 170)
    x = svg.Axis(0, 100, "% of the way through each program's steps", count_text, count=8)
    y = svg.Axis(0, top * 1.05, "fullest tile", bytes_text, count=4, binary=True)
    picture.axes(plot, x, y)
    edges = np.linspace(0, 100, COLUMNS + 1).tolist()
    ground = [0.0] * COLUMNS
    picture.path(svg.stairs(plot, x, y, edges, sizes[1].tolist(), ground), fill=ACCENT)
    picture.path(svg.stairs(plot, x, y, edges, sizes[0].tolist(), ground), "o")
    picture.text(96, 46, f"filled: {report.names[1]}, after; line: {report.names[0]}, before")
    _changes(picture, first, other, ipu)
    return str(picture)


def _through(profile: Profile, ipu: int) -> IntArray:
    """Bytes of the fullest tile at `COLUMNS` parts of the program, the most within each."""
    worst = profile.liveness_view.of(ipu=ipu).worst_tile_bytes if ipu < profile.ipus else np.zeros(0, dtype=np.int64)
    if not len(worst):
        return np.zeros(COLUMNS, dtype=np.int64)
    edges = np.arange(COLUMNS + 1) * len(worst) // COLUMNS
    return np.array([worst[low : max(low + 1, high)].max() for low, high in itertools.pairwise(edges)])


def change_of_tiles(first: Profile, other: Profile, ipu: int) -> IntArray:
    """Bytes of each tile, other minus first: int64[tiles]; a tile that is not there counts as 0."""
    before, after = tile_bytes(first, ipu), tile_bytes(other, ipu)
    change = np.zeros(max(len(before), len(after)), dtype=np.int64)
    change[: len(after)] += after
    change[: len(before)] -= before
    return change


def _changes(picture: svg.Picture, first: Profile, other: Profile, ipu: int) -> None:
    change = change_of_tiles(first, other, ipu)
    largest = max(first, other, key=lambda each: each.arrays["always_live"].shape[1])
    grid = plan(largest.tile_map)
    most = int(np.abs(change).max(initial=0)) or 1
    pixels = np.zeros((grid["rows"], grid["columns"], 4), dtype=np.uint8)
    for tile, moved in enumerate(change.tolist()):
        colour = MORE if moved > 0 else LESS
        rgb = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        pixels[tile % grid["rows"], tile // grid["rows"]] = [*rgb, 18 + round(237 * abs(moved) / most)]
    side = min(848 / grid["columns"], 46.0)
    picture.text(96, 300, "change of every tile")
    picture.image(96, 310, side * grid["columns"], 110, svg.png(pixels))
    picture.text(96, 442, f"blue: fewer bytes, orange: more; the strongest colour is {bytes_text(most)}")


def figure(report: Comparison) -> go.Figure:
    """Bytes of the fullest tile through each program, as a plain plotly figure: a line for each profile."""
    import plotly.graph_objects as go

    ipu = report.profiles[0].peak.ipu
    chart = go.Figure()
    at = (np.arange(COLUMNS) + 0.5) * 100 / COLUMNS
    for place, profile in enumerate(report.profiles):
        chart.add_scatter(x=at, y=_through(profile, ipu), name=report.numbered[place], line_shape="hvh")
    chart.update_layout(
        title=report.sentence,
        xaxis_title="% of the way through each program's steps",
        yaxis_title=f"bytes of the fullest tile of IPU {ipu}",
    )
    return chart


register(Face(name="comparison", title="Comparison", widget=widget, svg=draw, html=html, figure=figure, stored=stored))
