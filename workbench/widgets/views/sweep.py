"""A sweep drawn: bytes against the time of a sample, with capacity and Pareto front; curves; parallel coordinates."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.widgets.face import register
from workbench.widgets.kit.palette import MICRO_BATCHES
from workbench.widgets.views.schedules import StillFace

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.sweeps.sweep import Sweep
    from workbench.widgets.kit.svg import Box

KINDS = ("pareto", "curves", "parallel")


def measured(report: Sweep) -> pd.DataFrame:
    """The rows with a profile; `row`, `name` (what was asked) and `cost` (microseconds of a sample, else of a call)."""
    table = report.table[report.table["fits"].notna()].copy()
    table.insert(0, "row", table.index)
    table.insert(1, "name", [", ".join(f"{a}={_said(table.loc[i, a])}" for a in report.axes) for i in table.index])
    per_second = table["samples_per_second"].astype(float) if len(table) else table["row"].astype(float)
    known = bool(len(table)) and bool((per_second > 0).all())
    table.insert(
        2, "cost", 1e6 / per_second if known else (table["seconds"].astype(float) * 1e6 if len(table) else 0.0)
    )
    return table


def draw(report: Sweep) -> str:
    """The stored picture: a point per row, the front joined, the capacity as a line."""
    from workbench.base.units import bytes_text, seconds_text
    from workbench.widgets.kit import svg
    from workbench.widgets.kit.palette import ACCENT, BAD

    table = measured(report)
    picture = svg.Picture(960, 420, "Sweep: fullest tile against the time of a sample")
    if table.empty:
        picture.text(16, 60, "No point could be compiled.", "m")
        return str(picture)
    capacity = capacity_of(report, table)
    plot = svg.Box(96, 50, 830, 310)
    x = svg.Axis(0, float(table["cost"].max()) * 1.08, "time of a sample", lambda value: seconds_text(value * 1e-6))
    highest = max(float(table["max_tile_bytes"].max()), 1.0)
    drawn = highest > 0.25 * capacity
    top = max(highest, capacity if drawn else 0) * 1.1
    y = svg.Axis(0, top, "fullest tile", bytes_text, binary=True)
    picture.axes(plot, x, y)
    picture.capacity(plot, y, capacity, drawn=drawn)

    def at(row: Any) -> tuple[float, float]:
        height = plot.h * y.part(float(row.max_tile_bytes))
        return plot.x + plot.w * x.part(float(row.cost)), plot.y + plot.h - height

    rows: list[Any] = list(table.itertuples(index=False))
    front = set(report.pareto().index)
    path = [at(row) for row in sorted((row for row in rows if row.row in front), key=lambda row: row.cost)]
    picture.path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in path) if path else "M0 0", "o")
    for row in rows:
        a, b = at(row)
        picture.box(a - 4, b - 4, 8, 8, fill=ACCENT if row.fits else BAD, radius=4)
    named = [row for row in rows if row.row in front] + [row for row in rows if row.row not in front]
    names = [(*at(row), _short(row.name)) for row in named[: max(len(front), NAMED)]]
    over = plot.y + plot.h - plot.h * y.part(capacity)
    limit = [(plot.x, over), (plot.x + plot.w, over)] if drawn else []
    named_limit = [(plot.x + plot.w - CAPACITY_WIDE, over - 10), (plot.x + plot.w, over - 10)] if drawn else []
    _names(picture, plot, names, [*map(at, rows), *_along(path), *_along(limit), *_along(named_limit)])
    return str(picture)


def _along(path: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Places every pixel or two of a line."""
    found = []
    for (a, b), (c, d) in pairwise(path):
        parts = max(2, int(max(abs(c - a), abs(d - b)) / 2))
        found += [(a + (c - a) * part / parts, b + (d - b) * part / parts) for part in range(1, parts)]
    return found


CAPACITY_WIDE = 132  # pixels of what is written at the capacity's line
NAMED = 12  # points with their names, those of the front first


def _names(picture: Any, plot: Box, points: list[tuple[float, float, str]], marks: list[tuple[float, float]]) -> None:
    """Names beside their points, above or below them, inside the axes, where neither a name nor a mark lies; one
    without such room is left out."""
    taken: list[tuple[float, float, float]] = []
    for x, y, text in points:
        wide = 6.6 * len(text)
        places = [(x + 9, y + 4), (x - 9 - wide, y + 4), (x - wide / 2, y - 9), (x - wide / 2, y + 18)]
        places += [(x + 9, y - 8), (x + 9, y + 16), (x - 9 - wide, y - 8), (x - 9 - wide, y + 16)]
        for left, line in places:
            free = all(abs(line - b) >= 13 or left + wide < a or left > a + w for a, b, w in taken)
            clear = not any(left - 2 < a < left + wide + 2 and line - 12 < b < line + 4 for a, b in marks)
            inside = plot.x < left < plot.x + plot.w + 24 - wide and plot.y + 12 < line < plot.y + plot.h - 4
            if free and clear and inside:
                picture.text(left, line, text, "m")
                taken.append((left, line, wide))
                break


def _short(name: str) -> str:
    return name if len(name) <= 44 else f"{name[:43]}…"


def capacity_of(report: Sweep, table: pd.DataFrame) -> int:
    """Bytes of a tile, those of the first row that was compiled."""
    row = table.iloc[0]
    return int(row["max_tile_bytes"]) + int(row["margin_bytes"])


def html(report: Sweep) -> str:
    """Picture and table."""
    from workbench.widgets.kit.base import report_html, table_html

    table = report.table.astype(object)
    return report_html(report, draw(report), table_html(table.where(table.notna(), "")))


def widget(report: Sweep, selection: Any = None) -> Any:
    """The stored face as a widget."""
    from ipywidgets import HTML

    return HTML(html(report))


def figure(report: Sweep, kind: str = "pareto") -> go.Figure:
    """A plotly figure of one of KINDS."""
    import plotly.graph_objects as go

    if kind not in KINDS:
        raise InputError(f"there is no figure {kind!r} of a sweep", expected=f"one of: {', '.join(KINDS)}")
    table = measured(report)
    if kind == "parallel":
        dimensions = [_dimension(table, name) for name in (*report.axes, *MEASURES)]
        found = go.Figure(go.Parcoords(dimensions=dimensions))
    else:
        found = _curves(report, table) if kind == "curves" else _pareto(report, table)
    return found.update_layout(title=report.sentence)


def _byte_ticks(highest: float) -> dict[str, list[Any]]:
    """Places of an axis of bytes from zero on, and what stands there."""
    from workbench.base.units import bytes_text
    from workbench.widgets.kit.svg import short_text, ticks

    places = ticks(0, max(1.0, highest), 6, binary=True)
    return {"tickvals": places, "ticktext": [short_text(bytes_text(place)) for place in places]}


MEASURES = ("cost", "max_tile_bytes")
TITLES = {"cost": "microseconds of a sample", "max_tile_bytes": "bytes of the fullest tile"}


def _dimension(table: pd.DataFrame, name: str) -> dict[str, Any]:
    values, label = table[name].tolist(), TITLES.get(name, name)
    if all(map(_is_number, values)):
        ticks = _byte_ticks(max(values, default=0)) if name == "max_tile_bytes" else {}
        return {"label": label, "values": [float(value) for value in values], **ticks}
    known = list(dict.fromkeys(map(_said, sorted(values, key=_numbers_first))))
    places = [known.index(_said(value)) for value in values]
    return {"label": label, "values": places, "tickvals": list(range(len(known))), "ticktext": known}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _said(value: Any) -> str:
    """A value as a text; what is missing in a column was None, or no part of its point."""
    import pandas as pd

    return "None" if pd.isna(value) else str(value)


def _numbers_first(value: Any) -> tuple[bool, float]:
    """Numbers by size; all else behind them, as it came."""
    return (False, float(value)) if _is_number(value) else (True, 0.0)


def _pareto(report: Sweep, table: pd.DataFrame) -> go.Figure:
    import plotly.graph_objects as go

    found = go.Figure()
    front = table[table["row"].isin(report.pareto().index)].sort_values("cost")
    found.add_scatter(x=front["cost"], y=front["max_tile_bytes"], mode="lines", name="Pareto front")
    for fits, name in ((True, "fits"), (False, "does not fit")):
        part = table[table["fits"].astype(bool) == fits]
        found.add_scatter(x=part["cost"], y=part["max_tile_bytes"], mode="markers", name=name, text=part["name"])
    if len(table):
        capacity = capacity_of(report, table)
        found.update_yaxes(_byte_ticks(max(capacity, float(table["max_tile_bytes"].max()))))
        found.add_hline(y=capacity, line_dash="dash", annotation_text="capacity of a tile")
    found.update_layout(xaxis_title=TITLES["cost"], yaxis_title=TITLES["max_tile_bytes"])
    return found


def _curves(report: Sweep, table: pd.DataFrame) -> go.Figure:
    """Both measures along the first axis, a line for each value of the others, of one colour in both panels."""
    from plotly.subplots import make_subplots

    found = make_subplots(rows=1, cols=2, subplot_titles=[TITLES[measure] for measure in MEASURES])
    first, others = report.axes[0], list(report.axes[1:])
    groups = table.groupby(others, sort=False, dropna=False) if others else [((), table)]
    for number, (key, part) in enumerate(groups):
        values = part[first].tolist()
        along = part.iloc[sorted(range(len(part)), key=lambda place: _numbers_first(values[place]))]
        for column, measure in enumerate(MEASURES, start=1):
            found.add_scatter(
                x=[value if _is_number(value) else _said(value) for value in along[first].tolist()],
                y=along[measure],
                name=", ".join(map(_said, key)),
                legendgroup=str(number),
                showlegend=column == 1 and bool(others),
                line=_line(number),
                row=1,
                col=column,
                mode="lines+markers",
            )
    found.update_xaxes(title_text=first)
    if len(table):
        found.update_yaxes(_byte_ticks(float(table["max_tile_bytes"].max())), col=2)
    found.update_layout(legend_title_text=", ".join(others))
    return found


def _line(number: int) -> dict[str, str]:
    """Colour and dash of a group, which no other of the first 32 has."""
    return {
        "color": MICRO_BATCHES[number % len(MICRO_BATCHES)],
        "dash": DASHES[number // len(MICRO_BATCHES) % len(DASHES)],
    }


DASHES = ("solid", "dash", "dot", "dashdot")


register(StillFace(name="sweep", title="Sweep", widget=widget, svg=draw, html=html, figure=figure))
