"""Schedules side by side as bars: cycles by what the IPUs do in them, and the fullest tile of every IPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.widgets.face import Face, register

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.advice.schedules import ScheduleComparison

ROW = 30
LEFT, RIGHT = 210, 900


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
    from workbench.base.units import cycles_text
    from workbench.widgets.kit import svg
    from workbench.widgets.kit.palette import CAUSES, paint

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
    from workbench.widgets.kit.base import picture_html, table_html

    return picture_html(report.sentence, draw(report), table_html(report.to_pandas()))


def widget(report: ScheduleComparison, selection: Any = None) -> Any:
    """The stored face as a widget; there is nothing to select."""
    from ipywidgets import HTML

    return HTML(html(report))


def figure(report: ScheduleComparison) -> go.Figure:
    """The bars as a plain plotly figure, beside the bytes of the fullest tile of each IPU."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    from workbench.widgets.kit.palette import CAUSES, paint

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


register(StillFace(name="schedules", title="Schedules", widget=widget, svg=draw, html=html, figure=figure))
