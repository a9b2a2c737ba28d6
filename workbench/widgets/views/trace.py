"""The trace drawn: what every IPU does when, from the whole program down to the cycles of single tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from workbench.base.causes import CAUSE_WORDS
from workbench.base.causes import CAUSES as CAUSE_NAMES
from workbench.base.collection import paused_collection
from workbench.base.units import count_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.memory.live_bytes import ipus_of_step
from workbench.profiler.places import ipu_of, step_of
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.detail import BUSY, MAX_RECTANGLES, Detail, Lane, Window, count_blocks
from workbench.widgets.kit.palette import CAUSES, DIRECTIONS, GREY, Paint, paint
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.trace import Trace as Report

BINS = 2_000
MAX_STEPS_WITH_TILES = 40
MAX_BANDS = 6_000
DEAREST = 30  # steps in the list
LOOKED_AT = 200_000  # blocks, for the next execution of a step
STORED_BLOCKS = 8_000
MANY_BLOCKS = 300
_OF_STEP = ("cycles", "bytes_sent", "bytes_received", "active_tiles", "tile_balance")


@paused_collection()
def payload(
    report: Report,
    detail: Detail,
    visible: tuple[float, float],
    *,
    bins: int = BINS,
    least: float = -1.0,
    tiles_of: int | None = None,
) -> tuple[dict[str, Any], bytes]:
    """What the canvas draws for a visible window and half its width on either side.

    `bins` and `least` as in `Window`; `tiles_of` is the IPU whose single tiles are drawn when the steps are few.
    """
    profile = report.profile
    total, told = profile.total_cycles, int(profile.peak.ipu) if tiles_of is None else tiles_of
    margin = (visible[1] - visible[0]) / 2
    first, last = max(0, int(visible[0] - margin)), min(total, int(visible[1] + margin) + 1)
    bins = max(1, min(bins, MAX_RECTANGLES // max(1, profile.ipus)))
    window = Window(first=first, last=last, bins=bins, least=least)
    lanes = detail.lanes(window)
    columns: dict[str, tuple[str, Any]] = {}
    layers, directions = Names(), Names()
    for place, lane in enumerate(lanes):
        columns |= _lane_columns(place, lane, window, layers, directions)
    steps = {step for lane in lanes for _, _, step, _ in lane.blocks}
    bands = _bands(report, visible, tiles_of, columns)
    described, names = _described(report, sorted(steps), layers, directions)
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "lanes": list(range(profile.ipus)),
        "tiles": int(profile.target["tiles_per_ipu"]),
        "total_cycles": total,
        "clock_hz": float(profile.target["clock_hz"]),
        "from": first,
        "to": last,
        "bins": window.bins,
        "visible": list(visible),
        "busy": [CAUSES[cause] for cause in BUSY],
        "busy_names": list(BUSY),
        "paints": CAUSES,
        "proportions": _proportions(report, visible),
        **_balance(report, told, (round(visible[0]), round(visible[1]))),
        "tiles_of": told,
        "most_steps": MAX_STEPS_WITH_TILES,
        "dearest": _dearest(report),
        "by_cause": _sums(report.data["by_cause"]),
        "steps": described,
        "names": names.values,
        "layers": layers.values,
        "directions": [paint(DIRECTIONS, name) for name in directions.values],
        "bands": bands,
    }
    return data, buffer


def _sums(parts: Sequence[dict[str, int]]) -> dict[str, int]:
    found = {cause: sum(part.get(cause, 0) for part in parts) for cause in CAUSE_NAMES}
    return {cause: cycles for cause, cycles in found.items() if cycles}


def _proportions(report: Report, visible: tuple[float, float]) -> dict[str, int]:
    first, last = round(visible[0]), round(visible[1])
    found: dict[str, int] = {}
    for (_, cause), cycles in report.profile.timeline.totals(first, last).items():
        found[cause] = found.get(cause, 0) + cycles
    return _sums([found])


def _balance(report: Report, ipu: int, window: tuple[int, int]) -> dict[str, float]:
    """How even an IPU's compute is inside a window of cycles, and over how many tiles; of others it says nothing."""
    return {"balance": report.tile_balance(ipu, *window), "active": report.active_tiles(ipu, *window)}


def _dearest(report: Report) -> list[dict[str, Any]]:
    """The steps with most cycles over all their executions."""
    steps = report.profile.tables["steps"]
    order = np.argsort(-steps["total_cycles"], kind="stable")[:DEAREST]
    return [
        {
            "step": int(steps["id"][row]),
            "ipu": int(steps["ipu"][row]),
            "name": str(steps["name"][row]),
            "layer": str(steps["layer"][row]),
            "cause": BUSY.index(steps["cause"][row]),
            "times": int(steps["times"][row]),
            "total": int(steps["total_cycles"][row]),
        }
        for row in order.tolist()
        if steps["total_cycles"][row]
    ]


def _lane_columns(place: int, lane: Lane, window: Window, layers: Names, directions: Names) -> dict[str, Any]:
    blocks, stretches = lane.blocks, lane.layers
    parts = np.clip(np.rint(lane.bins / max(window.each, 1e-9) * 255), 0, 255)
    bins = parts.reshape(-1) if parts.any() else np.zeros(0)
    columns = {
        "start": ("f8", [block[0] for block in blocks]),
        "cycles": ("f4", [block[1] for block in blocks]),
        **_steps([block[2] for block in blocks], [block[3] for block in blocks]),
        "bins": ("u1", bins),
        "layerStart": ("f8", [stretch[0] for stretch in stretches]),
        "layerCycles": ("f4", [stretch[1] - stretch[0] for stretch in stretches]),
        "layer": ("i2", layers.indexes(stretch[2] for stretch in stretches)),
        "direction": ("u1", directions.indexes(stretch[3] for stretch in stretches)),
    }
    return {f"{name}{place}": column for name, column in columns.items()}


def _steps(steps: list[int], batches: list[int]) -> dict[str, tuple[str, Any]]:
    """The steps of blocks and, where there are any, their micro-batches: four bytes a block while both are small."""
    if max(batches, default=-1) < 0:
        return {"step": ("i4", steps)}
    kinds = ["i2" if max(values) < 1 << 15 else "i4" for values in (steps, batches)]
    return {"step": (kinds[0], steps), "batch": (kinds[1], batches)}


def _described(report: Report, steps: list[int], layers: Names, directions: Names) -> tuple[dict[str, Any], Names]:
    """The steps that are drawn, named once."""
    table = report.profile.tables["steps"]
    order = np.argsort(table["id"], kind="stable")
    rows = order[np.searchsorted(table["id"][order], steps)]
    names = Names()
    numbers = {name: table[name][rows].tolist() for name in _OF_STEP}
    return {
        "id": steps,
        "name": names.indexes(table["name"][rows]),
        "layer": layers.indexes(table["layer"][rows]),
        "direction": directions.indexes(table["direction"][rows]),
        "cause": [BUSY.index(cause) for cause in table["cause"][rows]],
        "cycles": numbers["cycles"],
        "sent": numbers["bytes_sent"],
        "received": numbers["bytes_received"],
        "active": numbers["active_tiles"],
        "balance": numbers["tile_balance"],
    }, names


def _bands(
    report: Report, visible: tuple[float, float], ipu: int | None, columns: dict[str, Any]
) -> dict[str, int] | None:
    """Cycles of single tiles, when an IPU is asked for and the steps in view are few."""
    if ipu is None:
        return None
    first, last = int(visible[0]), int(visible[1]) + 1
    walk = report.profile.timeline.walk(first, last, ipu)
    if sum(1 for _ in zip(range(MAX_STEPS_WITH_TILES + 1), walk, strict=False)) > MAX_STEPS_WITH_TILES:
        return None
    bands = report.tiles(ipu, first, last, max_rects=MAX_BANDS)
    if bands.empty:
        return None
    columns |= {
        "band_low": ("i2", bands["tile_from"].to_numpy()),
        "band_high": ("i2", bands["tile_to"].to_numpy()),
        "band_start": ("f8", bands["cycles_from"].to_numpy()),
        "band_cycles": ("f4", (bands["cycles_to"] - bands["cycles_from"]).to_numpy()),
        "band_cause": ("u1", [BUSY.index(str(cause)) for cause in bands["cause"]]),
    }
    return {"ipu": ipu}


class TraceView(View):
    """The trace canvas; `window` is the visible range, answered with the detail it can show."""

    _esm = assets.stub("views/trace.js")
    _css = assets.style("views/trace")
    window = traitlets.List(traitlets.Float(), []).tag(sync=True)

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.observe(self._show, "window")

    def _begin(self) -> None:
        self._detail = Detail(self._report.profile)
        if self.window:
            self.window = []  # which shows the whole
        else:
            self._show(None)

    def hear(self, message: Any) -> None:
        """`{"range": [from, to]}` measures a range of cycles; `{"step": id, "ipu": n, "asked": n}` asks where a step is
        next executed behind what is in view, with `"window": [from, to]` from that window on."""
        asked = message if isinstance(message, dict) else {}
        if "range" in asked:
            self._measure(asked["range"])
        elif "step" in asked:
            self._find(asked)

    def _find(self, asked: dict[str, Any]) -> None:
        window = self._cycles(asked["window"]) if "window" in asked else None
        if "window" in asked and window is None:
            return
        place = self._next(asked.get("step"), asked.get("ipu"), window)
        if place is not None:
            self.send({"place": place, "asked": asked.get("asked"), **({"window": list(window)} if window else {})})

    def _cycles(self, wanted: Any) -> tuple[int, int] | None:
        """Both ends of a window that a page asks for, None for nonsense."""
        total = self._report.profile.total_cycles
        try:
            first, last = (whole("range", end, least=0, most=total) for end in wanted)
        except (InputError, TypeError, ValueError):
            return None
        return first, last

    def _ipu(self) -> int:
        """The IPU whose tiles are told: the chosen one, else the fullest, as in the views beside this one."""
        profile, chosen = self._report.profile, self.selection.ipu
        return int(profile.peak.ipu) if chosen is None else min(chosen, profile.ipus - 1)

    def _measure(self, wanted: Any) -> None:
        asked = self._cycles(wanted)
        if asked is None:
            return
        first, last = asked
        ipu = self._ipu()
        told = {
            "range": [first, last],
            "proportions": _proportions(self._report, (first, last)),
            **_balance(self._report, ipu, (first, last)),
        }
        self.send({"told": told})

    def _next(self, step: Any, ipu: Any, window: tuple[int, int] | None = None) -> list[int] | None:
        """The cycles of the first execution that touches a window or comes behind it, else of the first of all; without
        a window the first that begins behind the visible range. Without an IPU, on the first that runs the step."""
        profile = self._report.profile
        try:
            step = step_of(profile, step)
            ipu = next(iter(ipus_of_step(profile, step)), 0) if ipu is None else ipu_of(profile, ipu)
        except InputError:
            return None
        begin = int(self.window[1]) if len(self.window) == 2 else 0
        for first in dict.fromkeys((begin if window is None else window[0], 0)):
            walk = profile.timeline.walk(first, profile.total_cycles, ipu)
            for _, block in zip(range(LOOKED_AT), walk, strict=False):
                if block.node.step == step and (block.start >= first or window is not None):
                    return [int(block.start), int(block.end)]
        return None

    def _show(self, change: Any) -> None:
        total = float(self._report.profile.total_cycles)
        visible = (self.window[0], self.window[1]) if len(self.window) == 2 else (0.0, total)
        ipu = self._ipu()
        self.send_payload(*payload(self._report, self._detail, visible, tiles_of=ipu))


def widget(report: Report, selection: Selection | None = None) -> TraceView:
    """The view in a notebook."""
    return TraceView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel: every block of a short program, the overview of a long one."""
    profile = report.profile
    short = count_blocks(profile, STORED_BLOCKS) < STORED_BLOCKS
    whole = (0.0, float(profile.total_cycles))
    data, buffer = payload(report, Detail(profile), whole, bins=2 * BINS, least=0.0 if short else -1.0)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.to_pandas().replace({"cause": dict(CAUSE_WORDS)})))


def draw(report: Report) -> str:
    """The stored picture: the whole program, a lane per IPU."""
    profile = report.profile
    detail, total = Detail(profile), profile.total_cycles
    high = 46 if profile.ipus <= 4 else 22
    seen = _sums(report.data["by_cause"])
    bins = max(96, 436 // max(1, profile.ipus))
    many = count_blocks(profile, MANY_BLOCKS) == MANY_BLOCKS
    picture = svg.Picture(960, int(118 + profile.ipus * (high + 8)), "Trace: what each IPU does when")
    below = picture.legend(16, 46, [CAUSES[cause] if cause in BUSY else _blank(cause) for cause in seen], 944)
    plot = svg.Box(72, below, 872, profile.ipus * (high + 8) - 8)
    axis = svg.Axis(0, total, "cycles since the start", count_text, count=9)
    # Of many short steps the picture shows shares of the time, of few each one.
    lanes = detail.lanes(Window(first=0, last=total, bins=bins, least=math.inf if many else -1.0))
    for ipu, lane in enumerate(lanes):
        y = plot.y + ipu * (high + 8)
        picture.text(16, y + high / 2 + 4, f"IPU {ipu}", "t b")
        picture.box(plot.x, y, plot.w, high, "c")
        _draw_lane(picture, lane, detail, svg.Box(plot.x, y, plot.w, high), axis)
    picture.axis_x(plot, axis)
    return str(picture)


def _blank(cause: str) -> Paint:
    """Waiting is where a lane shows its ground, on either theme."""
    return {"label": f"{CAUSES[cause]['label']} (blank)", "colour": f"{GREY}26", "pattern": ""}


def _draw_lane(picture: svg.Picture, lane: Lane, detail: Detail, box: svg.Box, axis: svg.Axis) -> None:
    """Bins as stacked areas, a path per cause, then the blocks that are long enough, a path per cause."""
    each = (axis.high - axis.low) / max(1, len(lane.bins))
    tops = np.zeros(len(lane.bins))
    unit = svg.Axis(0, 1, "", str)
    edges = np.linspace(axis.low, axis.high, len(lane.bins) + 1).tolist()
    for place, cause in enumerate(BUSY):
        parts = np.minimum(1.0, tops + lane.bins[:, place] / each)
        if (parts > tops).any():
            down = partial(svg.stairs, box, axis, unit, edges)
            picture.path(down((1 - tops).tolist(), (1 - parts).tolist()), fill=picture.fill(CAUSES[cause]))
        tops = parts
        boxes = [
            f"M{svg.number(box.x + axis.part(start) * box.w)} {svg.number(box.y)}"
            f"h{svg.number(max(0.6, cycles / (axis.high - axis.low) * box.w - 0.4))}v{svg.number(box.h)}"
            f"H{svg.number(box.x + axis.part(start) * box.w)}z"
            for start, cycles, step, _ in lane.blocks
            if detail.cause(step) == cause
        ]
        if boxes:
            picture.path("".join(boxes), fill=picture.fill(CAUSES[cause]))


def figure(report: Report) -> go.Figure:
    """Share of the time by cause, in bins over the program, a group of bars per IPU, as a plain plotly figure."""
    import plotly.graph_objects as go

    profile = report.profile
    detail, total = Detail(profile), profile.total_cycles
    chart = go.Figure()
    bins = max(1, min(500, 20_000 // (len(BUSY) * max(1, profile.ipus))))
    window = Window(first=0, last=total, bins=bins, least=math.inf)
    for ipu, lane in enumerate(detail.lanes(window)):
        middles = [(place + 0.5) * window.each for place in range(bins)]
        for place, cause in enumerate(BUSY):
            if lane.bins[:, place].any():
                chart.add_bar(
                    x=middles,
                    y=(lane.bins[:, place] / window.each).tolist(),
                    name=f"IPU {ipu}: {CAUSES[cause]['label']}",
                    marker_color=CAUSES[cause]["colour"],
                    offsetgroup=str(ipu),
                )
    chart.update_layout(
        title=report.sentence, barmode="relative", bargap=0, xaxis_title="cycles", yaxis_title="share of the time"
    )
    return chart


register(
    Face(
        name="trace",
        title="Trace",
        order=50,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
