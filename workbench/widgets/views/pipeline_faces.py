"""The pipeline without a kernel: the stored picture, and a plain plotly figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.base.units import count_text, cycles_text, things_text
from workbench.profiler.timeline.executions import Activity
from workbench.profiler.timeline.levels import Level, level
from workbench.widgets.kit import svg
from workbench.widgets.kit.palette import CAUSES, DIRECTIONS, GREY, MICRO_BATCHES, Paint, paint

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.profiler.reports.pipeline import Pipeline as Report

# Here colour is the micro-batch, so what lies between the stages is in two greys, and collectives in their colour.
WORK = {"copy": "#3f4750", "collective": CAUSES["collective"]["colour"], "other": "#6b7480"}
DRAWN = 1_500
HELD = 900_000  # columns whose phases are told apart
POINTS = 20_000
# From the top of a lane down, where several blocks share a rectangle.
ROWS = ("forward", "recompute", "backward", "update", "copy", "collective", "other")
BUBBLE = "#aeb5bd"
_BUBBLE: Paint = {"label": "bubble: the IPU waits", "colour": "#c3c8ce", "pattern": "rising"}


def draw(report: Report) -> str:
    """The stored picture: the pipeline's span, a lane per IPU, and the phases above."""
    ipus = report.profile.ipus
    first, last = report.span
    pitch = 54 if ipus <= 4 else 28 if ipus <= 16 else 12
    high = pitch - (8 if pitch > 20 else 2)
    shown = level(report.executions, first, last, DRAWN)
    picture = svg.Picture(960, 168 + ipus * pitch, "Pipeline: colour is the micro-batch")
    seen = {row_of(shown.bodies[place]) for place in np.unique(shown.body).tolist()}
    shared: list[Paint] = [{"label": f"{shown.group:,} micro-batches share a block", "colour": BUBBLE, "pattern": ""}]
    below = picture.legend(16, 46, [*keys(seen), *(shared if shown.group > 1 else []), _BUBBLE], 944)
    plot = svg.Box(72, below + 26, 872, ipus * pitch - (pitch - high))
    axis = svg.Axis(first, last, "cycles since the start", count_text, count=9)
    _draw_phases(picture, report, plot, axis)
    for ipu in range(ipus):
        y = plot.y + ipu * pitch
        if high > 12 or ipu % 4 == 0:
            picture.text(16, y + high / 2 + 4, f"IPU {ipu}", "t b")
        picture.box(plot.x, y, plot.w, high, fill=picture.fill(_BUBBLE) if shown.group == 1 else _BUBBLE["colour"])
        _draw_lane(picture, shown, ipu, svg.Box(plot.x, y, plot.w, high), axis)
    picture.axis_x(plot, axis)
    return str(picture)


def keys(seen: set[str]) -> list[Paint]:
    """The legend of what is seen: directions by pattern, and what lies between the stages."""
    found: list[Paint] = [{**paint(DIRECTIONS, row), "colour": GREY} for row in ROWS[:4] if row in seen]
    between = {**CAUSES["inter_ipu"], "colour": WORK["copy"]}
    found += [between] if "copy" in seen else []  # type: ignore[list-item]
    found += [CAUSES["collective"]] if "collective" in seen else []
    return [*found, {"label": "other work", "colour": WORK["other"], "pattern": ""}] if "other" in seen else found


def row_of(body: Activity) -> str:
    """The row of a lane that it belongs to, where several blocks share a rectangle."""
    return body.direction if body.kind == "stage" else body.kind


def runs_of(values: pd.Series) -> pd.Series:
    """The number of the run of equal neighbours that each value is in."""
    return (values != values.shift()).cumsum()


def phases(report: Report) -> list[tuple[int, int, str, int]]:
    """Neighbouring columns of one phase as one: start, end, phase, how many; those that are too many to hold, last."""
    columns = report.columns(0, report.profile.total_cycles, max_rows=HELD)
    found = [
        (int(rows["cycles_from"].min()), int(rows["cycles_to"].max()), str(rows["phase"].iloc[0]), len(rows))
        for _, rows in columns.groupby(runs_of(columns["phase"]))
    ]
    left = columns.attrs["left_out"]
    return [*found, (found[-1][1], report.span[1], "phases not told apart", left)] if left else found


def _draw_phases(picture: svg.Picture, report: Report, plot: svg.Box, axis: svg.Axis) -> None:
    for first, last, phase, count in phases(report):
        x, end = (plot.x + axis.part(cycle) * plot.w for cycle in (first, last))
        picture.box(x, plot.y - 20, max(0.5, end - x - 1), 16, "c")
        text = f"{phase}, {things_text(count, 'column')}"
        if end - x > 7 * len(text):
            picture.text((x + end) / 2, plot.y - 8, text, "m", "middle")


def _draw_lane(picture: svg.Picture, shown: Level, ipu: int, box: svg.Box, axis: svg.Axis) -> None:
    """A path for each fill; captions only where every block stands by itself."""
    paths: dict[str, list[str]] = {}
    low, end = np.searchsorted(shown.ipu, [ipu, ipu + 1]).tolist()
    rows = bases(shown, low, end)
    captions: list[tuple[float, float, str, str]] = []
    for i in range(low, end):
        body, batch = shown.bodies[int(shown.body[i])], int(shown.micro_batch[i])
        if body.kind == "idle":
            continue
        x = box.x + axis.part(float(shown.start[i])) * box.w
        wide = float(shown.span[i]) / (axis.high - axis.low) * box.w
        top, part = (0.0, 1.0) if shown.group == 1 else rows[row_of(body)]
        if shown.group > 1:
            part *= float(shown.busy[i]) / max(1, int(shown.span[i]))
        colour = colour_of(batch, shown.group)
        fill = picture.fill({**paint(DIRECTIONS, body.direction), "colour": colour})
        between = picture.fill(CAUSES["collective"]) if body.kind == "collective" else WORK.get(body.kind, "")
        shape = f"M{x:.1f} {box.y + top * box.h:.1f}h{max(0.4, wide - 0.5):.1f}v{part * box.h:.1f}H{x:.1f}z"
        paths.setdefault(fill if body.kind == "stage" else between, []).append(shape)
        if shown.group == 1 and body.kind == "stage" and wide > 24 and batch >= 0 and box.h > 14:
            captions.append((x + wide / 2, box.y + box.h / 2, f"{body.direction[:1].upper()}{batch}", colour))
    for fill, parts in paths.items():
        picture.path("".join(parts), fill=fill)
    for x, y, text, colour in captions:
        picture.box(x - 11, y - 8, 22, 16, fill=colour)
        picture.text(x, y + 4, text, "n", "middle")


def bases(shown: Level, low: int, end: int) -> dict[str, tuple[float, float]]:
    """By row where it begins in its lane and what its shares are scaled by: the busiest just fill the lane."""
    most = dict.fromkeys(ROWS, 0.0)
    for i in range(low, end):
        row = row_of(shown.bodies[int(shown.body[i])])
        if row in most:
            most[row] = max(most[row], float(shown.busy[i]) / max(1, int(shown.span[i])))
    factor = 1 / max(1.0, sum(most.values()))
    starts = np.cumsum([0.0, *most.values()]) * factor
    return {row: (float(start), factor) for row, start in zip(most, starts[:-1], strict=True)}


def colour_of(micro_batch: int, group: int = 1) -> str:
    """The colour of a micro-batch, or of so many neighbours that share one; of work that belongs to none, grey."""
    return GREY if micro_batch < 0 else MICRO_BATCHES[micro_batch // group % len(MICRO_BATCHES)]


def figure(report: Report) -> go.Figure:
    """Blocks as horizontal bars by direction, as a plain plotly figure of at most 20,000 bars."""
    import plotly.graph_objects as go

    shown = level(report.executions, *report.span, POINTS)
    rows = np.array([row_of(body) for body in shown.bodies], dtype="U12")[shown.body]
    chart = go.Figure()
    for direction in (name for name in DIRECTIONS if (rows == name).any()):
        places = np.flatnonzero(rows == direction)
        painted = paint(DIRECTIONS, direction)
        chart.add_bar(
            x=shown.span[places].tolist(),
            base=shown.start[places].tolist(),
            y=[f"IPU {ipu}" for ipu in shown.ipu[places]],
            orientation="h",
            name=painted["label"],
            marker_color=[colour_of(batch, shown.group) for batch in shown.micro_batch[places].tolist()],
            marker_pattern_shape={"": "", "rising": "/", "falling": "\\", "dots": ".", "cross": "+"}.get(
                painted["pattern"], "x"
            ),
            text=[_said(shown, place) for place in places.tolist()],
        )
    chart.update_layout(title=report.sentence, barmode="overlay", xaxis_title="cycles", yaxis_autorange="reversed")
    return chart


def _said(shown: Level, place: int) -> str:
    first, last = int(shown.micro_batch[place]), int(shown.last[place])
    if first < 0:
        return cycles_text(int(shown.busy[place]))
    return f"micro-batch {first}" if first == last else f"micro-batches {first} to {last}"
