"""Operators and layers drawn: an icicle of the layers by cycles, bytes or code over a table of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.base.units import bytes_text, cycles_text, shown_text, things_text
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import ACCENT, MICRO_BATCHES
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.profiler.reports.operations import Operations as Report

TEXTS = {"operators": ("name", "layer", "direction", "op", "plan", "type"), "layers": ("layer",)}
DRAWN = 24  # layers of a stored picture and of the figure, the dearest


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Both tables, whole: texts as places in `strings`, the rest as numbers."""
    names = Names()
    columns: dict[str, tuple[str, Any]] = {}
    tables = {}
    for name, frame in (("operators", report.operators), ("layers", report.layers)):
        texts = TEXTS[name]
        for column in frame.columns:
            values = ("i4", names.indexes(frame[column])) if column in texts else ("f8", frame[column].to_numpy())
            columns[f"{name}_{column}"] = values
        numbers = [str(column) for column in frame.columns if column not in texts]
        tables[name] = {"texts": list(texts), "numbers": numbers, "rows": len(frame)}
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "tables": tables,
        "strings": names.values,
        "hues": list(MICRO_BATCHES),
    }
    return data, buffer


class OperationsView(View):
    """The icicle and the table; a layer chosen in either is the selection's."""

    _esm = assets.stub("views/operations.js")
    _css = assets.style("views/operations")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))


def widget(report: Report, selection: Selection | None = None) -> OperationsView:
    """The view in a notebook."""
    return OperationsView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the dearest layers first."""
    return report_html(report, draw(report), table_html(report.layers))


def _dearest(report: Report) -> pd.DataFrame:
    return report.layers.head(DRAWN)


def _cut(report: Report) -> str:
    """How many layers of how many are drawn; "" for all."""
    return shown_text(min(DRAWN, len(report.layers)), len(report.layers), "layer", "with most cycles")


def draw(report: Report) -> str:
    """The stored picture: the dearest layers as bars of cycles, with the bytes of their variables."""
    rows = _dearest(report).to_dict("records")
    title = _cut(report) or f"The cycles of {things_text(len(report.layers), 'layer')}"
    picture = svg.Picture(960, 60 + 22 * max(1, len(rows)), title)
    picture.text(300, 46, "cycles of all executions")
    picture.text(944, 46, "bytes of variables", anchor="end")
    most = max([int(row["cycles"]) for row in rows] or [1]) or 1
    for place, row in enumerate(rows):
        y = 56 + place * 22
        label = str(row["layer"]) or "(no layer)"
        picture.text(16, y + 12, label if len(label) <= 40 else f"{label[:39]}…", "t")
        wide = 380 * int(row["cycles"]) / most
        picture.box(300, y + 2, max(1.0, wide), 13, fill=ACCENT, radius=2)
        picture.text(306 + wide, y + 12, cycles_text(int(row["cycles"])))
        picture.text(944, y + 12, bytes_text(int(row["variable_bytes"])), anchor="end")
    if not rows:
        picture.text(16, 66, "There is no layer.")
    return str(picture)


def figure(report: Report) -> go.Figure:
    """The dearest layers as a plain plotly figure: cycles by direction, what has none on its own."""
    import plotly.graph_objects as go

    rows = _dearest(report)
    chart = go.Figure()
    rest = rows["cycles"].copy()
    for direction in ("forward", "recompute", "backward", "update"):
        cycles = rows[f"{direction}_cycles"]
        rest -= cycles
        chart.add_bar(x=cycles, y=rows["layer"], orientation="h", name=direction)
    chart.add_bar(x=rest, y=rows["layer"], orientation="h", name="no direction")
    chart.update_layout(
        title="; ".join(part for part in (report.sentence, _cut(report)) if part),
        barmode="stack",
        xaxis_title="cycles of all executions",
        yaxis_autorange="reversed",
    )
    return chart


register(
    Face(
        name="operations",
        title="Operations",
        order=70,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
