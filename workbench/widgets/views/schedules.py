"""Schedules side by side: their lanes under one time axis; cycles by what the IPUs do in them; the fullest tiles."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import FloatArray
from workbench.base.units import cycles_text
from workbench.profiler.advice.schedules import stash_bytes
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.detail import BUSY, Window, bins_of
from workbench.widgets.kit.palette import CAUSES, paint
from workbench.widgets.kit.payload import pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.advice.schedules import ScheduleComparison, Trial
    from workbench.profiler.profile import Profile
    from workbench.profiler.timeline import Timeline

ROW = 30
LEFT, RIGHT = 210, 860


@dataclass(frozen=True, slots=True, kw_only=True)
class StillFace(Face):
    """A face without a live view: picture, table and text."""

    def mimebundle(self, report: Any) -> dict[str, Any]:
        """Stored HTML and text."""
        return {"text/html": self.html(report), "text/plain": str(report)}


def bars(report: ScheduleComparison) -> dict[str, dict[str, float]]:
    """Trial → cycles of the call by cause, the mean over its IPUs; they sum to the cycles of the call."""
    trials = [trial for trial in report.trials if trial.executable is not None]
    found: dict[str, dict[str, float]] = {}
    for trial, profile in zip(trials, report.profiles, strict=True):
        spent = profile.cycle_breakdown.groupby("cause", sort=False)["cycles"].sum() / profile.ipus
        found[trial.title] = {str(cause): float(cycles) for cause, cycles in spent.items() if cycles}
    return found


def draw(report: ScheduleComparison) -> str:
    """The stored picture."""
    found = bars(report)
    causes = list(dict.fromkeys(cause for row in found.values() for cause in row))
    longest = max(sum(row.values()) for row in found.values())
    picture = svg.Picture(960, 96 + ROW * len(found), "Schedules: cycles of a call by cause, mean over the IPUs")
    top = picture.legend(16, 46, [paint(CAUSES, cause) for cause in causes], 944) + 8
    for place, (title, row) in enumerate(found.items()):
        y, x = top + ROW * place, float(LEFT)
        picture.text(16, y + ROW / 2 + 2, title, "t")
        for cause in causes:
            width = (RIGHT - LEFT) * row.get(cause, 0.0) / longest
            if width:
                picture.box(x, y, width, ROW - 8, fill=picture.fill(paint(CAUSES, cause)))
            x += width
        picture.text(x + 6, y + ROW / 2 + 2, cycles_text(round(sum(row.values()))), "m")
    return str(picture)


def html(report: ScheduleComparison) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.to_pandas()))


BINS = 1_200  # parts of a lane's time
MOST_BINS = 2_000_000  # of all lanes and causes together


def payload(report: ScheduleComparison) -> tuple[dict[str, Any], bytes]:
    """Each schedule that compiled: its numbers, and its IPUs' time by cause in bins over its own length."""
    lanes = sum(profile.ipus for profile in report.profiles)
    bins = max(1, min(BINS, MOST_BINS // max(1, lanes * len(BUSY))))
    columns: dict[str, tuple[str, Any]] = {}
    schedules = []
    lanes_of: dict[Timeline, FloatArray] = {}  # trials of the same program have one
    trials = [trial for trial in report.trials if trial.executable is not None]
    for place, (trial, profile) in enumerate(zip(trials, report.profiles, strict=True)):
        if profile.timeline not in lanes_of:
            lanes_of[profile.timeline] = _lanes(profile, bins)
        columns[f"bins{place}"] = ("u1", lanes_of[profile.timeline])
        schedules.append(_described(trial, profile, best=profile is report.best))
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "bins": bins,
        "busy": [CAUSES[cause] for cause in BUSY],
        "causes": CAUSES,
        "clock_hz": float(report.profiles[0].target["clock_hz"]),
        "schedules": schedules,
        "refused": [{"title": trial.title, "problem": trial.problem} for trial in report.trials if trial.problem],
    }
    return data, buffer


def _lanes(profile: Profile, bins: int) -> FloatArray:
    """Which share of each bin an IPU spends on each cause, in 255ths."""
    window = Window(first=0, last=profile.total_cycles, bins=bins, least=math.inf)
    found = bins_of(profile, window)
    return np.clip(np.rint(found / max(window.each, 1e-9) * 255), 0, 255).reshape(-1)


def _described(trial: Trial, profile: Profile, *, best: bool) -> dict[str, Any]:
    breakdown, spent = profile.tables["cycle_breakdown"], Counter[str]()
    for cause, cycles in zip(*(breakdown[name].tolist() for name in ("cause", "cycles")), strict=True):
        spent[cause] += cycles
    return {
        "title": trial.title,
        "best": best,
        "fits": profile.fits,
        "ipus": profile.ipus,
        "total_cycles": profile.total_cycles,
        "bubble": float(profile.pipeline.bubbles()["fraction"]),
        "max_tile_bytes": profile.max_tile_bytes,
        "stash_bytes": stash_bytes(profile),
        "spent": {cause: cycles for cause, cycles in spent.items() if cycles},
    }


class SchedulesView(View):
    """The lanes of every schedule under one time axis."""

    _esm = assets.stub("views/schedules.js")
    _css = assets.style("views/schedules")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))


def widget(report: ScheduleComparison, selection: Selection | None = None) -> SchedulesView:
    """The view in a notebook."""
    return SchedulesView(report, selection)


def stored(report: ScheduleComparison) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def figure(report: ScheduleComparison) -> go.Figure:
    """The bars as a plain plotly figure, beside the bytes of the fullest tile of each IPU."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    found = bars(report)
    chart = make_subplots(cols=2, subplot_titles=("cycles of a call, mean over the IPUs", "fullest tile, bytes"))
    for cause in dict.fromkeys(cause for row in found.values() for cause in row):
        painted = paint(CAUSES, cause)
        values = [row.get(cause, 0.0) for row in found.values()]
        bar = go.Bar(x=list(found), y=values, name=painted["label"], marker_color=painted["colour"])
        chart.add_trace(bar, row=1, col=1)
    table = report.to_pandas().dropna(subset=["total_cycles"])
    for ipu in range(max(profile.ipus for profile in report.profiles)):
        fullest = go.Scatter(x=list(found), y=table[f"ipu_{ipu}_tile_bytes"], name=f"IPU {ipu}", mode="markers")
        chart.add_trace(fullest, row=1, col=2)
    chart.update_layout(title=report.sentence, barmode="stack")
    return chart


register(Face(name="schedules", title="Schedules", widget=widget, svg=draw, html=html, figure=figure, stored=stored))
