"""The pipeline drawn: a lane per IPU, blocks by micro-batch and direction, and the bubbles between them counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import traitlets

from workbench.units import count_text, percent_text
from workbench.widgets import assets, svg
from workbench.widgets.base import View, picture_html, table_html
from workbench.widgets.detail import BUSY, MAX_RECTANGLES, Detail, Lane, Window
from workbench.widgets.palette import CAUSES, DIRECTIONS, GREY, MICRO_BATCHES, Paint, paint
from workbench.widgets.payload import Names, pack
from workbench.widgets.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.reports.pipeline import Pipeline as Report

BINS = 1_500
MAX_BLOCKS = 10_000

# Here colour is the micro-batch, so work outside the stages is told apart by its pattern alone.
WORK: dict[str, Paint] = {cause: {**CAUSES[cause], "colour": "#56606b"} for cause in BUSY}
WORK["compute"]["label"] = "other work"


def payload(report: Report, detail: Detail, visible: tuple[float, float]) -> tuple[dict[str, Any], bytes]:
    """Blocks and the work between them for a visible window and half its width on either side."""
    profile, total = report.profile, report.profile.total_cycles
    margin = (visible[1] - visible[0]) / 2
    first, last = max(0, int(visible[0] - margin)), min(total, int(visible[1] + margin) + 1)
    bins = max(1, min(BINS, MAX_RECTANGLES // (2 * max(1, profile.ipus))))
    window = Window(first=first, last=last, bins=bins)
    lanes = [detail.lane(ipu, window) for ipu in range(profile.ipus)]
    columns: dict[str, tuple[str, Any]] = {}
    for place, lane in enumerate(lanes):
        columns |= _lane_columns(place, lane, window)
    # Without stages there is nothing to find, and looking would visit every step.
    blocks = report.blocks(first, last, MAX_BLOCKS + 1 if report.data["stages"] else 0)
    too_many = len(blocks) > MAX_BLOCKS
    directions = Names()
    columns |= _block_columns(blocks.head(0) if too_many else blocks, directions)
    steps = sorted({step for lane in lanes for _, _, step, _ in lane.blocks})
    layout, buffer = pack(columns)
    seen = set(profile.tables["cycle_breakdown"]["cause"].tolist())
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "lanes": list(range(profile.ipus)),
        "total_cycles": total,
        "clock_hz": float(profile.target["clock_hz"]),
        "from": first,
        "to": last,
        "bins": bins,
        "visible": list(visible),
        "busy": list(WORK.values()),
        "idle": {cause: painted for cause, painted in CAUSES.items() if cause.startswith("idle_")},
        "other": [place for place, cause in enumerate(BUSY) if cause in seen and cause != "exchange"],
        "steps": {"id": steps, "cause": [BUSY.index(detail.cause(step)) for step in steps]},
        "block_directions": [{**paint(DIRECTIONS, name), "name": name} for name in directions.values],
        "batch_colours": list(MICRO_BATCHES),
        "bubbles": _bubbles(report, visible),
        "ideal": ideal(report),
        "too_many": too_many,
        **_stages(report),
    }
    return data, buffer


def _bubbles(report: Report, visible: tuple[float, float]) -> dict[str, Any]:
    found = report.bubbles(round(visible[0]), round(visible[1]))
    return {"fraction": found["fraction"], "by_cause": found["by_cause"]}


def ideal(report: Report) -> str:
    """What equal stages would leave, for the schedule that has the closed formula; else empty."""
    plan = report.data["pipeline"]
    stages, micro_batches = plan.get("stages"), plan.get("micro_batches")
    if plan.get("schedule") != "Grouped" or not isinstance(stages, int) or not isinstance(micro_batches, int):
        return ""
    fraction = percent_text((stages - 1) / (micro_batches + stages - 1))
    return (
        f"Equal stages alone would leave (N - 1) / (G + N - 1) = {fraction}, N = {stages} stages, G = {micro_batches}"
    )


def _stages(report: Report) -> dict[str, Any]:
    rows = [
        {
            "stage": int(row["stage"]),
            "ipu": int(row["ipu"]),
            "work": int(row["compute_cycles"] + row["exchange_cycles"]),
            "idle_cycles": int(row["idle_cycles"]),
        }
        for row in report.data["stages"]
    ]
    return {"stages": rows, "most_work": max((row["work"] for row in rows), default=0)}


def _lane_columns(place: int, lane: Lane, window: Window) -> dict[str, Any]:
    parts = np.clip(np.rint(lane.bins / max(window.each, 1e-9) * 255), 0, 255)
    columns: dict[str, tuple[str, Any]] = {
        "start": ("f8", [block[0] for block in lane.blocks]),
        "cycles": ("f4", [block[1] for block in lane.blocks]),
        "step": ("i4", [block[2] for block in lane.blocks]),
        "bins": ("u1", parts.reshape(-1) if parts.any() else np.zeros(0)),
    }
    return {f"{name}{place}": column for name, column in columns.items()}


def _block_columns(blocks: pd.DataFrame, directions: Names) -> dict[str, Any]:
    length = blocks["cycles_to"] - blocks["cycles_from"]
    return {
        "block_start": ("f8", blocks["cycles_from"].to_numpy(dtype=np.float64)),
        "block_cycles": ("f4", length.to_numpy(dtype=np.float64)),
        "block_ipu": ("i2", blocks["ipu"].to_numpy(dtype=np.int64)),
        "block_stage": ("i2", blocks["stage"].to_numpy(dtype=np.int64)),
        "block_batch": ("i4", blocks["micro_batch"].to_numpy(dtype=np.int64)),
        "block_direction": ("u1", directions.indexes(blocks["direction"])),
    }


class PipelineView(View):
    """The pipeline canvas; a click lights up a micro-batch on every IPU."""

    _esm = assets.javascript("pipeline")
    _css = assets.style("pipeline")
    window = traitlets.List(traitlets.Float(), []).tag(sync=True)

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self._detail = Detail(report.profile)
        self._answer(None)
        self.observe(self._answer, "window")

    def _answer(self, change: Any) -> None:
        visible = (self.window[0], self.window[1]) if len(self.window) == 2 else _span(self._report)
        self.send_payload(*payload(self._report, self._detail, visible))


def _span(report: Report) -> tuple[float, float]:
    first, last = report.span
    return float(first), float(max(last, first + 1))


def widget(report: Report, selection: Selection | None = None) -> PipelineView:
    """The view in a notebook."""
    return PipelineView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report, Detail(report.profile), (0.0, float(max(1, report.profile.total_cycles))))
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table of the stages."""
    return picture_html(report.sentence, draw(report), table_html(report.to_pandas()))


def draw(report: Report) -> str:
    """The stored picture: the pipeline's span, a lane per IPU."""
    profile = report.profile
    first, last = report.span
    high = 46 if profile.ipus <= 4 else 20
    blocks = report.blocks(first, last, MAX_BLOCKS)
    shown = sorted(set(blocks["direction"]), key=list(DIRECTIONS).index) if len(blocks) else []
    bubble: Paint = {"label": "bubble: the IPU waits", "colour": "#c3c8ce", "pattern": "rising"}
    keys: list[Paint] = [{**paint(DIRECTIONS, name), "colour": GREY} for name in shown]
    picture = svg.Picture(960, 132 + profile.ipus * (high + 8), "Pipeline: colour is the micro-batch")
    below = picture.legend(16, 46, [*keys, WORK["compute"], WORK["inter_ipu"], bubble], 944)
    plot = svg.Box(72, below, 872, profile.ipus * (high + 8) - 8)
    axis = svg.Axis(first, last, "cycles since the start", count_text, count=9)
    detail = Detail(profile)
    for ipu in range(profile.ipus):
        y = plot.y + ipu * (high + 8)
        picture.text(16, y + high / 2 + 4, f"IPU {ipu}", "t b")
        picture.box(plot.x, y, plot.w, high, fill=picture.fill(bubble))
        lane = detail.lane(ipu, Window(first=first, last=last, bins=max(96, 436 // max(1, profile.ipus))))
        _draw_work(picture, lane, detail, svg.Box(plot.x, y, plot.w, high), axis)
    _draw_blocks(picture, blocks, plot, axis, high)
    picture.axis_x(plot, axis)
    return str(picture)


def _draw_work(picture: svg.Picture, lane: Lane, detail: Detail, box: svg.Box, axis: svg.Axis) -> None:
    """Work of any kind under the blocks: what stays uncovered is a bubble."""
    paths: dict[str, list[str]] = {}
    each = (axis.high - axis.low) / max(1, len(lane.bins))
    spans = [(start, cycles, detail.cause(step)) for start, cycles, step, _ in lane.blocks]
    for place in np.flatnonzero(lane.bins.sum(axis=1) > 0).tolist():
        busiest = BUSY[int(np.argmax(lane.bins[place]))]
        spans.append((int(axis.low + place * each), math.ceil(float(lane.bins[place].sum())), busiest))
    for start, cycles, cause in spans:
        x = box.x + axis.part(start) * box.w
        wide = cycles / (axis.high - axis.low) * box.w
        paths.setdefault(cause, []).append(
            f"M{svg.number(x)} {svg.number(box.y)}h{wide:.2f}v{svg.number(box.h)}h-{wide:.2f}z"
        )
    for cause, parts in paths.items():
        picture.path("".join(parts), fill=picture.fill(WORK[cause]))


def _draw_blocks(picture: svg.Picture, blocks: pd.DataFrame, plot: svg.Box, axis: svg.Axis, high: int) -> None:
    for row in blocks.to_dict("records"):
        x = plot.x + axis.part(row["cycles_from"]) * plot.w
        wide = (row["cycles_to"] - row["cycles_from"]) / (axis.high - axis.low) * plot.w
        y = plot.y + row["ipu"] * (high + 8)
        batch = int(row["micro_batch"])
        colour = colour_of(batch)
        pattern = paint(DIRECTIONS, row["direction"])["pattern"]
        picture.box(x, y, max(0.5, wide - 0.6), high, fill=picture.fill(_paint(colour, pattern)))
        if wide > 24 and batch >= 0:
            picture.box(x + wide / 2 - 11, y + high / 2 - 8, 22, 16, fill=colour)
            text = f"{row['direction'][:1].upper()}{batch}"
            picture.text(x + wide / 2, y + high / 2 + 4, text, "n", "middle")


def _paint(colour: str, pattern: str) -> Paint:
    return {"label": "", "colour": colour, "pattern": pattern}


def colour_of(micro_batch: int) -> str:
    """The colour of a micro-batch; of work that belongs to none, grey."""
    return GREY if micro_batch < 0 else MICRO_BATCHES[micro_batch % len(MICRO_BATCHES)]


def figure(report: Report) -> go.Figure:
    """Blocks as horizontal bars by direction, as a plain plotly figure."""
    import plotly.graph_objects as go

    blocks = report.blocks(max_rows=MAX_BLOCKS)
    chart = go.Figure()
    for direction, rows in blocks.groupby("direction", sort=False):
        painted = paint(DIRECTIONS, str(direction))
        batches = rows["micro_batch"].tolist()
        chart.add_bar(
            x=(rows["cycles_to"] - rows["cycles_from"]).tolist(),
            base=rows["cycles_from"].tolist(),
            y=[f"IPU {ipu}" for ipu in rows["ipu"]],
            orientation="h",
            name=painted["label"],
            marker_color=[colour_of(batch) for batch in batches],
            text=[f"micro-batch {batch}" for batch in batches],
        )
    chart.update_layout(title=report.sentence, barmode="overlay", xaxis_title="cycles", yaxis_autorange="reversed")
    return chart
