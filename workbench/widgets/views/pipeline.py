"""The pipeline drawn: a lane per IPU, blocks by micro-batch and direction, and the bubbles between them counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from workbench.base.causes import CAUSES as CAUSE_NAMES
from workbench.base.units import percent_text
from workbench.profiler.timeline.executions import Activity, layers_text
from workbench.profiler.timeline.levels import Level, level
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import CAUSES, DIRECTIONS, GREY, MICRO_BATCHES, Paint, paint
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection
from workbench.widgets.views.pipeline_faces import (
    BUBBLE,
    HELD,
    WORK,
    bases,
    draw,
    figure,
    keys,
    phases,
    row_of,
    runs_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from workbench.profiler.reports.pipeline import Pipeline as Report

__all__ = ["PipelineView", "draw", "figure", "html", "payload", "stored", "widget"]

MAX_RECTANGLES = 20_000
# Of the budget the columns above the lanes take this many at most; more are drawn as their phases.
MAX_COLUMNS = 2_000


def payload(report: Report, visible: tuple[float, float]) -> tuple[dict[str, Any], bytes]:
    """Rectangles of a visible window and half its width on either side, at the level of detail that fits the budget."""
    profile, total = report.profile, report.profile.total_cycles
    margin = (visible[1] - visible[0]) / 2
    first, last = max(0, int(visible[0] - margin)), min(total, int(visible[1] + margin) + 1)
    shown = level(report.executions, first, last, MAX_RECTANGLES - MAX_COLUMNS)
    used, body = np.unique(shown.body, return_inverse=True)
    layout, buffer = pack(
        {**_rectangles(shown, body), **_columns(report.columns(first, last, max_rows=HELD), min(last, report.span[1]))}
    )
    spent = report.spent(round(visible[0]), round(visible[1]))
    idle = spent[spent["cause"].str.startswith("idle_")].groupby("ipu")["cycles"].sum()
    offsets = np.searchsorted(shown.ipu, np.arange(profile.ipus + 1)).tolist()
    data = {
        "layout": layout,
        "from": first,
        "to": last,
        "visible": list(visible),
        "group": shown.group,
        "offsets": offsets,
        "bodies": [_body(shown.bodies[place]) for place in used.tolist()],
        "bases": [bases(shown, *ends) for ends in pairwise(offsets)] if shown.group > 1 else [],
        "spent": [int(spent["cycles"][spent["cause"] == cause].sum()) for cause in CAUSE_NAMES],
        "idle_by_ipu": [int(idle.get(ipu, 0)) for ipu in range(profile.ipus)],
        **_fixed(report),
    }
    return data, buffer


def _fixed(report: Report) -> dict[str, Any]:
    """What does not depend on the window."""
    profile = report.profile
    stages = profile.stages
    on_ipu: list[list[int]] = [[] for _ in range(profile.ipus)]
    for ipu, stage in zip(stages["ipu"].tolist(), stages["stage"].tolist(), strict=True):
        on_ipu[ipu].append(stage)
    return {
        "sentence": report.sentence,
        "ipus": profile.ipus,
        "replicas": int(profile.meta.get("replicas", 1)),
        "micro_batches": int(profile.meta["pipeline"].get("micro_batches", 0)),
        "total_cycles": profile.total_cycles,
        "clock_hz": float(profile.target["clock_hz"]),
        "on_ipu": [f"stage {', '.join(map(str, held))}" if held else "" for held in on_ipu],
        "causes": [_idle(cause) if cause.startswith("idle_") else CAUSES[cause] for cause in CAUSE_NAMES],
        "grey": GREY,
        "batch_colours": list(MICRO_BATCHES),
        "keys": [*keys({row_of(body) for body in report.executions.bodies}), *_waiting(report)],
        "phases": phases(report),
        "ideal": ideal(report),
        "stages": _stages(report),
    }


def _idle(cause: str) -> Paint:
    return {**CAUSES[cause], "colour": BUBBLE}


def _waiting(report: Report) -> list[Paint]:
    """The causes of waiting that there are."""
    seen = set(report.profile.tables["cycle_breakdown"]["cause"].tolist())
    return [_idle(cause) for cause in CAUSE_NAMES if cause.startswith("idle_") and cause in seen]


def _rectangles(shown: Level, body: Any) -> dict[str, tuple[str, Any]]:
    """Columns of 16 bytes a rectangle; where several blocks share one, 8 more."""
    wide = "i4" if len(shown) and int(shown.last.max()) > np.iinfo(np.int16).max else "i2"
    columns: dict[str, tuple[str, Any]] = {
        "start": ("f8", shown.start),
        "span": ("f4", shown.span),
        "body": ("i2", body),
        "batch": (wide, shown.micro_batch),
    }
    return columns if shown.group == 1 else {**columns, "busy": ("f4", shown.busy), "last": (wide, shown.last)}


def _columns(found: pd.DataFrame, last: int) -> dict[str, tuple[str, Any]]:
    """Columns of the pipeline; when they are many, their phases, and how many columns each has; those that are too many
    to hold as one more, up to `last`."""
    runs = np.arange(len(found)) if len(found) <= MAX_COLUMNS else runs_of(found["phase"])
    groups = found.groupby(runs)
    start, end = groups["cycles_from"].min().to_numpy(), groups["cycles_to"].max().to_numpy()
    number, ipu, count = (
        groups["column"].min().to_numpy(),
        groups["slowest_ipu"].max().to_numpy(),
        groups.size().to_numpy(),
    )
    if left := found.attrs["left_out"]:
        start, end = np.append(start, end[-1]), np.append(end, last)
        number, ipu, count = np.append(number, found["column"].iloc[-1] + 1), np.append(ipu, -1), np.append(count, left)
    return {
        "col_start": ("f8", start),
        "col_cycles": ("f4", end - start),
        "col_number": ("i4", number),
        "col_count": ("i4", count),
        "col_ipu": ("i2", ipu),
    }


def _body(body: Activity) -> dict[str, Any]:
    """What recurs, in words and paint; where the colour is empty it is that of the micro-batch, or the bubble's."""
    main = max(body.mix, key=lambda part: part[1], default=("compute", 1.0))[0]
    note, painted = body.layer, CAUSES[main]
    if body.kind == "idle":
        title, colour = painted["label"], ""
        note = "for the host" if body.ipu < 0 else f"for IPU {body.ipu}"
    elif body.kind == "stage" or body.stage >= 0:
        title = f"{body.direction}{' copy' if body.kind == 'copy' else ''}, stage {body.stage}"
        painted, colour = (paint(DIRECTIONS, body.direction), "") if body.kind == "stage" else (painted, WORK["copy"])
    else:
        title, colour, note = painted["label"], WORK[body.kind], body.name
    return {
        "kind": body.kind,
        "row": row_of(body),
        "stage": body.stage,
        "direction": body.direction,
        "title": title,
        "note": note,
        "colour": colour,
        "pattern": painted["pattern"],
        "mix": [[CAUSE_NAMES.index(cause), round(part, 6)] for cause, part in body.mix],
    }


def ideal(report: Report) -> str:
    """What equal stages would leave before the weight update, for the schedules that have a closed formula, and what
    these leave there; else empty."""
    plan = report.data["pipeline"]
    stages, count = plan.get("stages"), plan.get("micro_batches")
    if not isinstance(stages, int) or not isinstance(count, int) or "device_mapping" in plan:
        return ""
    if plan.get("schedule") == "Sequential":
        left = f"1 - 1 / N = {percent_text(1 - 1 / stages)} waiting, N = {stages} stages"
    elif plan.get("schedule") == "Grouped":
        fraction = percent_text((stages - 1) / (count + stages - 1))
        left = f"(N - 1) / (G + N - 1) = {fraction} waiting, N = {stages} stages, G = {count}"
    else:
        return ""
    return f"Equal stages alone would leave {left}{_before_update(report)}"


def _before_update(report: Report) -> str:
    """The formulas know no weight update, which may take longer than all else; no text where there is none."""
    last = phases(report)[-1:]
    if not last or last[0][2] != "update":
        return ""
    share = report.bubbles(report.span[0], last[0][0])["fraction"]
    return f"; here it is {percent_text(share)} before the weight update"


def _stages(report: Report) -> list[dict[str, Any]]:
    bodies = [body for body in report.executions.bodies if body.kind == "stage"]
    layers = layers_of_stages({body.stage: body.layers for body in bodies if body.direction == "forward"})
    return [
        {
            "stage": int(row["stage"]),
            "ipu": int(row["ipu"]),
            "layers": layers.get(int(row["stage"]), ""),
            "work": int(row["compute_cycles"] + row["exchange_cycles"]),
            "idle": int(row["idle_cycles"]),
            "depth": int(row["fifo_depth"]) if row["fifo_depth"] >= 0 else "",
            "stash_bytes": int(row["stash_bytes"]),
        }
        for row in report.to_pandas().to_dict("records")
    ]


def layers_of_stages(of_stage: Mapping[int, Sequence[str]]) -> dict[int, str]:
    """The layers of each stage in a text that a column has room for: of nested ones the outermost, where no other stage
    has a part of them too."""
    outer = {stage: tuple(dict.fromkeys(name.partition("/")[0] for name in own)) for stage, own in of_stage.items()}
    held = Counter(name for names in outer.values() for name in names)
    return {
        stage: layers_text(names if all(held[name] == 1 for name in names) else of_stage[stage])
        for stage, names in outer.items()
    }


def of_micro_batch(report: Report, number: int | None) -> dict[str, Any]:
    """Every block of a micro-batch over the whole program; empty for none, or one that there is not."""
    executions = report.executions
    found = executions.of_micro_batch(-1 if number is None else number)
    order = np.lexsort((found.ipu, found.start)).tolist()
    if not order:
        return {}
    blocks = [
        {"batch": number, "ipu": int(found.ipu[i]), "start": int(found.start[i]), "cycles": int(found.cycles[i])}
        | _body(executions.bodies[int(found.body[i])])
        for i in order
    ]
    return {"micro_batch": number, "blocks": blocks}


class PipelineView(View):
    """The pipeline canvas; a click lights up a micro-batch on every IPU.

    `window` is the visible range in cycles, `marks` the two markers (empty: none), `mine` every block of the chosen
    micro-batch.
    """

    _esm = assets.stub("views/pipeline.js")
    _css = assets.style("views/pipeline")
    window = traitlets.List(traitlets.Float(), []).tag(sync=True)
    marks = traitlets.List(traitlets.Float(), []).tag(sync=True)
    mine = traitlets.Dict({}).tag(sync=True)

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        super().__init__(report, selection)
        self.observe(self._show, "window")
        self.follow(self._choose, "micro_batch")

    def _begin(self) -> None:
        self.marks = []
        if self.window:
            self.window = []  # which shows the whole
        else:
            self._show(None)
        self._choose(None)

    def _show(self, change: Any) -> None:
        visible = (self.window[0], self.window[1]) if len(self.window) == 2 else _span(self._report)
        self.send_payload(*payload(self._report, visible))

    def _choose(self, change: Any) -> None:
        self.mine = of_micro_batch(self._report, self.selection.micro_batch)


def _span(report: Report) -> tuple[float, float]:
    first, last = report.span
    return float(first), float(max(last, first + 1))


def widget(report: Report, selection: Selection | None = None) -> PipelineView:
    """The view in a notebook."""
    return PipelineView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report, (0.0, float(max(1, report.profile.total_cycles))))
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table of the stages."""
    return report_html(report, draw(report), table_html(report.to_pandas()))


register(
    Face(
        name="pipeline",
        title="Pipeline",
        order=60,
        shown=lambda profile: bool(profile.meta.get("pipeline")),
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
