"""Found uses of IPUs as bars: samples a second of the ways to use a system, fullest tiles of numbers of IPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.base.units import things_text
from workbench.widgets.face import register
from workbench.widgets.views.schedules import StillFace

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.splits.fewest import FewestIpus
    from workbench.splits.plan import Plan

ROW = 34
LEFT, WIDE, RIGHT = 420, 400, 944
CHARACTER = 6  # pixels of one in a sentence
TOP = 66
MOST = 20  # rows that are drawn


def _rows(title: str, over: str, rows: list[tuple[str, float, str, bool]], capacity: float = 0.0) -> str:
    """A row each: its name, how much, that as text, and whether it fits; the first MOST of them."""
    from workbench.widgets.kit import svg
    from workbench.widgets.kit.palette import ACCENT, BAD

    drawn = rows[:MOST]
    picture = svg.Picture(960, TOP + ROW * len(drawn) + (30 if len(rows) > MOST else 10), title)
    picture.text(LEFT, TOP - 16, over, "m")
    most = max([capacity, 1e-30, *(much for _, much, _, _ in drawn)])
    limit = LEFT + WIDE * capacity / most  # text on either side of it can be read
    for place, (name, much, said, fits) in enumerate(drawn):
        y = TOP + ROW * place
        picture.text(16, y + 12, name, "t")
        length = max(1.0, WIDE * much / most) if much else 0.0
        if length:
            picture.box(LEFT, y + 2, length, 12, fill=ACCENT if fits else BAD, radius=2)
        behind = LEFT + length + (8 if length else 0)
        if capacity and behind <= limit <= behind + 7 * len(said):
            behind = limit + 8
        picture.text(behind, y + 12, _short(said, int((RIGHT - behind) / CHARACTER)), "m")
    if capacity:
        picture.path(f"M{limit:.1f} {TOP - 6}v{ROW * len(drawn)}", "k")
    if len(rows) > MOST:
        picture.text(16, TOP + ROW * len(drawn) + 14, f"{len(rows) - MOST} more are in the table.", "m")
    return str(picture)


def draw_plan(report: Plan) -> str:
    """The stored picture: samples a second of each use, the best first; what does not fit has none."""
    from workbench.base.units import bytes_text, rate_text

    rows = []
    for row in report.table.itertuples(index=False):
        use: Any = row
        name = _use(use)
        fits = _known(use.fits) and bool(use.fits)
        speed = float(use.samples_per_second) if fits else 0.0
        if fits:
            said = rate_text(speed)
        else:
            said = f"does not fit: {bytes_text(int(use.max_tile_bytes))}" if _known(use.fits) else "did not compile"
        rows.append((name, speed, said, fits))
    return _rows("Plan: samples a second, modelled", "samples a second", rows)


def draw_fewest(report: FewestIpus) -> str:
    """The stored picture: the fullest tile on each number of IPUs, with the capacity as a line."""
    from workbench.base.units import bytes_text

    capacity, rows = 0, []
    for row in report.table.itertuples(index=False):
        use: Any = row
        name = f"{use.ipus} {'IPU' if use.ipus == 1 else 'IPUs'}"
        if not _known(use.max_tile_bytes):
            rows.append((name, 0.0, str(use.why), False))
            continue
        size = int(use.max_tile_bytes)
        capacity = size + int(use.margin_bytes)
        rows.append((name, float(size), bytes_text(size), bool(use.fits)))
    return _rows("On how few IPUs it fits", f"fullest tile, of {bytes_text(capacity)}", rows, capacity)


def _known(value: Any) -> bool:
    import pandas as pd

    return not pd.isna(value)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def plan_html(report: Plan) -> str:
    """Picture, what to type, and table."""
    return _html(report, draw_plan(report), report.code)


def fewest_html(report: FewestIpus) -> str:
    """Picture, what to type, and table."""
    return _html(report, draw_fewest(report), "" if report.split is None else report.split.code)


def _html(report: Plan | FewestIpus, picture: str, code: str) -> str:
    """What is typed wraps between its arguments, and nowhere else."""
    from workbench.base.text import markup
    from workbench.widgets.kit.base import report_html, table_html

    table = report.to_pandas().astype(object)
    left = "".join(f"<p>Not tried: {markup(each)}.</p>" for each in getattr(report, "untried", ()))
    typed = f"<p><code>{markup(code)}</code></p>" if code else ""
    return report_html(report, picture, table_html(table.where(table.notna(), ""))) + typed + left


def plan_figure(report: Plan) -> go.Figure:
    """Bars of samples a second, the best first."""
    table = report.table
    names = [_use(row) for row in table.itertuples(index=False)]
    return _bars(names, _floats(table["samples_per_second"]), "samples a second")


def fewest_figure(report: FewestIpus) -> go.Figure:
    """Bars of the fullest tile on each number of IPUs."""
    table = report.table
    found = _bars(table["ipus"].map(str).tolist(), _floats(table["max_tile_bytes"]), "bytes of the fullest tile")
    capacity = (table["max_tile_bytes"] + table["margin_bytes"]).dropna()
    found.add_hline(y=int(capacity.iloc[0]), line_dash="dash", annotation_text="capacity of a tile")
    found.update_xaxes(title_text="IPUs")
    return found


def _use(row: Any) -> str:
    stages = things_text(row.stages, "stage")
    schedule = f", {row.schedule}" if row.schedule else ""
    return f"{row.replicas:,} × {stages}, micro-batches of {row.batch_size:,}{schedule}"


def _floats(column: Any) -> list[float | None]:
    return [float(value) if _known(value) else None for value in column]


def _bars(names: list[str], values: list[float | None], title: str) -> go.Figure:
    import plotly.graph_objects as go

    found = go.Figure(go.Bar(x=names, y=values))
    found.update_xaxes(type="category")
    found.update_yaxes(title_text=title)
    return found


def plan_widget(report: Plan, selection: Any = None) -> Any:
    """The stored face as a widget; there is nothing to select."""
    return _widget(plan_html(report))


def fewest_widget(report: FewestIpus, selection: Any = None) -> Any:
    """The stored face as a widget; there is nothing to select."""
    return _widget(fewest_html(report))


def _widget(html: str) -> Any:
    from ipywidgets import HTML

    return HTML(html)


register(StillFace(name="plan", title="Plan", widget=plan_widget, svg=draw_plan, html=plan_html, figure=plan_figure))
register(
    StillFace(
        name="fewest_ipus",
        title="Fewest IPUs",
        widget=fewest_widget,
        svg=draw_fewest,
        html=fewest_html,
        figure=fewest_figure,
    )
)
