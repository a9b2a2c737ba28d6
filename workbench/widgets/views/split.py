"""Stages of a found split as bars: what each IPU is busy and its fullest tile, beside what was expected of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.widgets.face import register
from workbench.widgets.views.schedules import StillFace

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.splits.split import Split

ROW = 40
LEFT, MIDDLE, WIDE = 330, 650, 280
TOP = 70


def draw(report: Split) -> str:
    """The stored picture: a row per stage, cycles in the middle, bytes on the right with the capacity as a line."""
    from workbench.base.units import bytes_text, cycles_text
    from workbench.widgets.kit import svg
    from workbench.widgets.kit.palette import ACCENT, BAD

    table, capacity = report.table, int(report.profile.target["bytes_per_tile"])
    slowest = max(_largest(table["cycles"]), _largest(table["expected_cycles"]))
    fullest = max(capacity, _largest(table["max_tile_bytes"]), _largest(table["expected_bytes"]))
    picture = svg.Picture(960, TOP + ROW * len(table) + 34, "Stages: busy cycles and fullest tile")
    picture.text(LEFT, TOP - 14, "busy cycles of a call", "m")
    picture.text(MIDDLE, TOP - 14, f"fullest tile, of {bytes_text(capacity)}", "m")
    rows: list[Any] = list(table.itertuples(index=False))
    for place, row in enumerate(rows):
        y = TOP + ROW * place
        picture.text(16, y + 12, f"stage {row.stage} on IPU {row.ipu}", "t")
        picture.text(16, y + 27, _layers(row), "m")
        _bar(picture, LEFT, y, row.cycles / slowest, _share(row.expected_cycles, slowest), ACCENT)
        picture.text(LEFT, y + 27, cycles_text(row.cycles), "m")
        colour = ACCENT if row.max_tile_bytes <= capacity else BAD
        _bar(picture, MIDDLE, y, row.max_tile_bytes / fullest, _share(row.expected_bytes, fullest), colour)
        picture.text(MIDDLE, y + 27, bytes_text(row.max_tile_bytes), "m")
    line = MIDDLE + WIDE * capacity / fullest
    picture.path(f"M{line:.1f} {TOP - 6}v{ROW * len(table)}", "k")
    picture.text(16, TOP + ROW * len(table) + 16, "Upright marks: what was expected before it was compiled.", "m")
    return str(picture)


def _largest(column: Any) -> int:
    found = column.dropna()
    return int(found.max()) if len(found) else 1


def _share(value: Any, whole: int) -> float | None:
    import pandas as pd

    return None if pd.isna(value) else float(value) / whole


def _layers(row: Any) -> str:
    names = row.first if row.layers == 1 else f"{row.layers} layers, {_short(row.first)} to {_short(row.last)}"
    return str(names)


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:8]}…{name[-9:]}"


def _bar(picture: Any, x: int, y: int, part: float, expected: float | None, colour: str) -> None:
    picture.box(x, y + 2, max(1.0, WIDE * part), 12, fill=colour, radius=2)
    if expected is not None:
        picture.path(f"M{x + WIDE * expected:.1f} {y - 1}v18", "o")


def html(report: Split) -> str:
    """Picture and tables."""
    from workbench.widgets.kit.base import report_html, table_html

    return report_html(report, draw(report), table_html(report.table) + table_html(report.tried))


def widget(report: Split, selection: Any = None) -> Any:
    """The stored face as a widget; there is nothing to select."""
    from ipywidgets import HTML

    return HTML(html(report))


def figure(report: Split) -> go.Figure:
    """Bars of cycles and of the fullest tile, each beside what was expected."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    table = report.table
    names = [f"stage {stage}" for stage in table["stage"]]
    found = make_subplots(rows=1, cols=2, subplot_titles=("busy cycles of a call", "fullest tile, bytes"))
    for column, (measured, expected) in enumerate(
        (("cycles", "expected_cycles"), ("max_tile_bytes", "expected_bytes")), start=1
    ):
        for name in (measured, expected):
            values = table[name].astype(object).where(table[name].notna(), None).tolist()
            found.add_trace(go.Bar(name=name.replace("_", " "), x=names, y=values), row=1, col=column)
    capacity = int(report.profile.target["bytes_per_tile"])
    found.add_hline(y=capacity, line_dash="dash", row=1, col=2)
    return found


register(StillFace(name="split", title="Split", widget=widget, svg=draw, html=html, figure=figure))
