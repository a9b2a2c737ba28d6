"""A diagnosis drawn: each fix with its verdict, its bytes against a tile, its cost, its code, and a button to apply."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets

from workbench.base.text import markup
from workbench.base.units import bytes_text, cycles_text
from workbench.errors import InputError
from workbench.profiler.advice.diagnose import Diagnosis as Report
from workbench.profiler.advice.diagnose import Fix, says
from workbench.profiler.advice.search.trial import cost_of
from workbench.widgets import linked
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html, with_html
from workbench.widgets.kit.palette import BAD
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

GOOD = "#1d7f4e"
KINDS = ("bars", "scatter")
MIN_TICKS, MAX_TICKS = 3, 6
# Gauges reach to twice a tile, and bytes get a logarithmic axis where something needs four times a tile: one program
# far beyond a tile would press all that fits into a corner.
GAUGE_TILES, LOGARITHMIC_TILES = 2, 4
PLOT_HIGH = 330
# Letters of 12 px that stand side by side in the picture.
LETTERS = 150
LOGARITHMIC = " (logarithmic)"
SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TABLE = ["fix", "estimated_bytes", "verified_bytes", "verified_cycles", "cost", "numbers", "fits", "margin_bytes"]


def content(report: Report) -> dict[str, Any]:
    """What the view says, as texts and shares."""
    profile = report.profile
    limit, now = int(profile.target["bytes_per_tile"]), profile.max_tile_bytes
    most = min(max([limit, now, *(_bytes(fix) for fix in report.fixes)]), GAUGE_TILES * limit)
    return {
        "sentence": report.sentence if report.ended else f"{len(report.tried)} compiled so far. {report.sentence}",
        "ended": report.ended,
        "estimated": report.estimated,
        "limit": limit / most,
        "now": {**_gauge(now, most), "text": bytes_text(now), "cost": cycles_text(cost_of(profile))},
        "fixes": [_row(report, fix, most) for fix in report.fixes],
        "skipped": [f"{lever}: {reason}" for lever, reason in report.skipped],
        "tried": [
            f"{fix.fix}: {fix.problem or f'{bytes_text(fix.verified_bytes or 0)}, {_verdict(fix)}'}"
            for fix in report.tried
        ],
        "plot": plot_of(report),
    }


def plot_of(report: Report) -> dict[str, Any]:
    """Bytes of the fullest tile against cost, as parts of a plot's width and height: a point for each compile and for
    the program as it is, the Pareto front, the capacity, and ticks. Cost has a logarithmic axis, and bytes have one
    where something needs several times a tile. Empty with nothing measured."""
    points = [fix for fix in report.tried if fix.verified_bytes is not None and fix.cost]
    base, limit = report.profile, int(report.profile.target["bytes_per_tile"])
    if not points or cost_of(base) <= 0:
        return {}
    costs = [fix.cost or 0.0 for fix in points]
    low, high = math.log(min(*costs, cost_of(base)) / 1.1), math.log(max(*costs, cost_of(base)) * 1.1)
    x = svg.Axis(low, high, "", str)
    up, ticks = _bytes_axis([limit, base.max_tile_bytes, *(_bytes(fix) for fix in points)], limit)

    def at(cost: float, size: float) -> dict[str, float]:
        return {"x": x.part(math.log(cost)), "y": up(size)}

    front = report.pareto()[["cost", "verified_bytes"]].to_numpy(float).tolist()
    is_log = _is_logarithmic([limit, base.max_tile_bytes, *(_bytes(fix) for fix in points)], limit)
    return {
        "axes": f"All that was compiled: bytes of the fullest tile{LOGARITHMIC if is_log else ''} against "
        f"cycles × IPUs a sample{LOGARITHMIC}",
        "points": [
            {
                **at(fix.cost or 0.0, _bytes(fix)),
                "fits": bool(fix.fits),
                "text": f"{fix.fix}: {bytes_text(_bytes(fix))}, {cycles_text(fix.cost or 0)}",
            }
            for fix in points
        ],
        "now": {
            **at(cost_of(base), base.max_tile_bytes),
            "text": f"As it is: {bytes_text(base.max_tile_bytes)}, {cycles_text(cost_of(base))}",
        },
        "front": [at(*each) for each in front],
        "limit": up(limit),
        "limit_text": f"capacity {bytes_text(limit)}",
        "ticks_x": [{"at": x.part(math.log(each)), "text": short_cycles(each)} for each in _round(low, high)],
        "ticks_y": [{"at": up(each), "text": bytes_text(each)} for each in ticks],
    }


def _bytes_axis(sizes: list[int], limit: int) -> tuple[Callable[[float], float], list[float]]:
    """Where bytes stand as parts of the plot's height, and its ticks: from nothing, or by powers of two."""
    if not _is_logarithmic(sizes, limit):
        y = svg.Axis(0, 1.08 * max(sizes), "", bytes_text, count=4, binary=True)
        return y.part, list(y.ticks)
    low, high = math.floor(math.log2(max(1, min(sizes)))), math.log2(max(sizes)) + 0.1
    ticks = [2.0**power for power in range(low, math.floor(high) + 1)]
    y = svg.Axis(low, high, "", str)
    return lambda size: y.part(math.log2(max(1.0, size))), ticks[:: math.ceil(len(ticks) / MAX_TICKS)]


def _is_logarithmic(sizes: list[int], limit: int) -> bool:
    return max(sizes) > LOGARITHMIC_TILES * limit


def _round(low: float, high: float) -> list[float]:
    """Round numbers between two logarithms: 1, 2 and 5 times powers of ten; about four even ones if these are few."""
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    found = [each for each in found if low <= math.log(each) <= high]
    return found if len(found) >= MIN_TICKS else svg.ticks(math.exp(low), math.exp(high), 4)


def short_cycles(value: float) -> str:
    """`20 k`: of a tick, whose axis says what it counts."""
    return f"{value:g}" if value < 1000 else next(f"{value / size:g} {name}" for size, name in SIZES if value >= size)


def _row(report: Report, fix: Fix, most: int) -> dict[str, Any]:
    change = report.slowdown(fix) - 1
    return {
        "title": fix.fix[:1].upper() + fix.fix[1:],
        "note": says(fix),
        "code": fix.code,
        "fits": bool(fix.fits),
        "verdict": _verdict(fix),
        "doubt": fix.doubt[:1].upper() + fix.doubt[1:],
        **_gauge(_bytes(fix), most),
        "bytes": bytes_text(_bytes(fix)),
        "estimate": f"estimated {bytes_text(fix.estimated_bytes)}",
        "cost": "" if fix.cost is None else cycles_text(fix.cost),
        "change": "" if fix.cost is None else f"{change * 100:+.1f} %".replace("-", "−"),
    }


def _gauge(size: int, most: int) -> dict[str, Any]:
    """How far a gauge of `most` bytes is filled; `beyond` where it ends before the size does."""
    return {"share": min(1.0, size / most), "beyond": size > most}


def _bytes(fix: Fix) -> int:
    return fix.estimated_bytes if fix.verified_bytes is None else fix.verified_bytes


def _verdict(fix: Fix) -> str:
    if fix.margin_bytes is None:
        return "estimated"
    if fix.fits:
        return f"fits, {bytes_text(fix.margin_bytes)} to spare"
    return f"{bytes_text(-fix.margin_bytes)} over" if fix.margin_bytes < 0 else "does not fit its region"


class DiagnosisView(View):
    """The fixes as a table; `on_apply` callbacks hear the number of the fix whose button was pressed."""

    _esm = assets.stub("views/diagnosis.js")
    _css = assets.style("views/diagnosis")

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        self._callbacks: list[Callable[[int], None]] = []
        super().__init__(report, selection)

    def _begin(self) -> None:
        self.live = not self._report.estimated and self._report.ended
        self.data = content(self._report)

    def grow(self, report: Report) -> None:
        """Show the same search further on, or at its end: what is unfolded stays so, and a control keeps the focus."""
        self._report = report
        self._begin()

    def stop(self) -> None:
        """Say that the search was left off: nothing more comes, and what was measured can be applied."""
        said = f"{len(self._report.tried)} compiled, then it was left off. {self._report.sentence}"
        self.live, self.data = not self._report.estimated, {**self.data, "ended": True, "sentence": said}

    def on_apply(self, callback: Callable[[int], None]) -> None:
        """Call back with the number of a fix when its button is pressed."""
        self._callbacks.append(callback)

    def hear(self, message: Any) -> None:
        """`{"apply": number}` calls back."""
        index = message.get("apply") if isinstance(message, dict) else None
        if isinstance(index, int) and 0 <= index < len(self.data["fixes"]):
            for callback in self._callbacks:
                callback(index)


class Applied(ipywidgets.VBox):
    """A diagnosis with, once a fix is applied, the profile it gives below it and a button that takes it back.

    `executable`: the last compile that was not taken back, None where there is none.
    """

    def __init__(self, report: Report, selection: Selection | None = None) -> None:
        self.view = DiagnosisView(report, selection)
        self._made: list[tuple[str, Any, Any]] = []
        super().__init__([self.view])
        self._report = report
        self.view.on_apply(self.apply)

    @property
    def executable(self) -> Any:
        """What was applied last."""
        return self._made[-1][1] if self._made else None

    def apply(self, index: int) -> None:
        """Compile with a fix and show what comes out."""
        executable = self._report.apply(index)
        self._made.append((self._report.fixes[index].fix, executable, linked.profile_view(executable.profile)))
        self._show()

    def undo(self) -> None:
        """Take the last fix back: the one before it is shown again, or none."""
        if self._made:
            self._made.pop()
        self._show()

    def _show(self) -> None:
        if not self._made:
            self.children = [self.view]
            return
        title, _, shown = self._made[-1]
        button = ipywidgets.Button(description="Undo", icon="undo", tooltip=f"Take back: {title}")
        button.on_click(lambda _: self.undo())
        applied = ipywidgets.HTML(f"<b>Applied:</b> {markup(title)}")
        self.children = [self.view, ipywidgets.HBox([applied, button]), shown]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return with_html(super()._repr_mimebundle_(**kwargs), html(self._report), self._report.sentence)


def widget(report: Report, selection: Selection | None = None) -> Applied:
    """The view in a notebook; a press of Apply shows the profile below."""
    return Applied(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    return {"data": content(report), "buffer": b""}


def html(report: Report) -> str:
    """Picture and table."""
    return report_html(report, draw(report), table_html(report.to_pandas()[_TABLE]))


def draw(report: Report) -> str:
    """The stored picture: a bar for the program as it is and one for each fix, against a tile's size."""
    found = content(report)
    rows = [{**found["now"], "title": "As it is", "bytes": found["now"]["text"]}, *found["fixes"]]
    plot, said = found["plot"], [_figures(row) for row in rows]
    titles = [textwrap.wrap(row["title"], LETTERS - len(text)) for row, text in zip(rows, said, strict=True)]
    below = 58 + sum(30 + 16 * len(lines) for lines in titles)
    picture = svg.Picture(960, below + (PLOT_HIGH if plot else 0), "Bytes of the fullest tile")
    y = 56.0
    for row, text, lines in zip(rows, said, titles, strict=True):
        picture.text(942, y, text, "t", "end")
        for line in lines:
            picture.text(18, y, line)
            y += 16
        _draw_gauge(picture, y - 10, row, found["limit"], fits=row.get("fits", report.profile.fits))
        y += 30
    if plot:
        _draw_plot(picture, plot, svg.Box(96, below + 34, 830, PLOT_HIGH - 94))
    return str(picture)


def _figures(row: dict[str, Any]) -> str:
    """A row's figures on one line."""
    return " · ".join(part for part in (row["bytes"], row.get("verdict"), row["cost"], row.get("change")) if part)


def _draw_gauge(picture: svg.Picture, y: float, row: dict[str, Any], limit: float, *, fits: bool) -> None:
    """A bar against a tile's size, cut open at its end where the size goes beyond it."""
    picture.box(18, y, 924, 10, "c", radius=5)
    picture.box(18, y, max(2.0, 924 * row["share"]), 10, fill=GOOD if fits else BAD, radius=5)
    picture.box(18 + 924 * limit - 3, y - 4, 3, 18, "t")
    if row["beyond"]:
        picture.path("".join(f"M{x} {y + 14}l6-18h4l-6 18z" for x in (916, 924)), "p")


def _draw_plot(picture: svg.Picture, plot: dict[str, Any], box: svg.Box) -> None:
    """All that was compiled, below the bars."""

    def across(part: float) -> float:
        return box.x + box.w * part

    def up(part: float) -> float:
        return box.y + box.h * (1 - part)

    picture.text(16, box.y - 16, plot["axes"], "t b")
    for tick in plot["ticks_y"]:
        picture.path(f"M{box.x} {up(tick['at']):.1f}h{box.w}", "g")
        picture.text(box.x - 8, up(tick["at"]) + 4, tick["text"], anchor="end")
    for tick in plot["ticks_x"]:
        picture.text(across(tick["at"]), box.y + box.h + 18, tick["text"], anchor="middle")
    picture.text(box.x + box.w / 2, box.y + box.h + 38, "cycles × IPUs a sample", anchor="middle")
    picture.path(f"M{box.x} {up(plot['limit']):.1f}h{box.w}", "k")
    picture.text(box.x + box.w, up(plot["limit"]) - 6, plot["limit_text"], "w", "end")
    if plot["front"]:
        first, *rest = plot["front"]
        stairs = "".join(f"H{across(each['x']):.1f}V{up(each['y']):.1f}" for each in rest)
        picture.path(f"M{across(first['x']):.1f} {up(first['y']):.1f}{stairs}", "o")
    for point in plot["points"]:
        fill = GOOD if point["fits"] else BAD
        picture.box(across(point["x"]) - 4, up(point["y"]) - 4, 8, 8, fill=fill, radius=4)
    now = plot["now"]
    picture.box(across(now["x"]) - 4, up(now["y"]) - 4, 8, 8, "t")
    picture.text(across(now["x"]) - 8, up(now["y"]) - 8, "as it is", "t", "end" if now["x"] > 0.5 else "")


def figure(report: Report, kind: str = "bars") -> go.Figure:
    """The same bars as a plain plotly figure; or bytes against cost, with the capacity and the Pareto front."""
    import plotly.graph_objects as go

    if kind not in KINDS:
        raise InputError(f"there is no figure {kind!r} of a diagnosis", expected=f"one of: {', '.join(KINDS)}")
    if kind == "scatter":
        return _scatter(report)

    names = ["as it is", *(fix.fix for fix in report.fixes)]
    sizes = [report.profile.max_tile_bytes, *(_bytes(fix) for fix in report.fixes)]
    fits = [report.profile.fits, *(bool(fix.fits) for fix in report.fixes)]
    chart = go.Figure(go.Bar(x=sizes, y=names, orientation="h", marker_color=[GOOD if each else BAD for each in fits]))
    chart.add_vline(x=int(report.profile.target["bytes_per_tile"]), line_dash="dash", annotation_text="capacity")
    chart.update_layout(title=report.sentence, xaxis_title="bytes of the fullest tile", yaxis_autorange="reversed")
    return chart


def _scatter(report: Report) -> go.Figure:
    """A point for each compile that came through, the program as it is among them."""
    import plotly.graph_objects as go

    chart, front = go.Figure(), report.pareto()
    chart.add_scatter(x=front["cost"], y=front["verified_bytes"], mode="lines", name="Pareto front")
    measured = [fix for fix in report.tried if fix.verified_bytes is not None]
    for fits, name in ((True, "fits"), (False, "does not fit")):
        part = [fix for fix in measured if bool(fix.fits) == fits]
        chart.add_scatter(
            x=[fix.cost for fix in part],
            y=[fix.verified_bytes for fix in part],
            mode="markers",
            name=name,
            text=[fix.fix for fix in part],
            marker_color=GOOD if fits else BAD,
        )
    now = report.profile
    chart.add_scatter(x=[cost_of(now)], y=[now.max_tile_bytes], mode="markers", name="as it is", marker_symbol="x")
    chart.add_hline(y=int(now.target["bytes_per_tile"]), line_dash="dash", annotation_text="capacity of a tile")
    sizes = [now.max_tile_bytes, *(_bytes(fix) for fix in measured)]
    chart.update_xaxes(title="cycles x IPUs a sample", type="log")
    chart.update_yaxes(
        title="bytes of the fullest tile",
        type="log" if _is_logarithmic(sizes, int(now.target["bytes_per_tile"])) else "linear",
    )
    chart.update_layout(title=report.sentence)
    return chart


register(
    Face(
        name="diagnosis",
        title="Diagnosis",
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
