"""The user's code drawn: the text of its lines beside what each costs, and the steps that it became."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.units import bytes_text, cycles_text, percent_text, shown_text, things_text
from workbench.profiler.report import records
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import ACCENT
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.profiler.profile import Profile
    from workbench.profiler.reports.source import Source as Report

DRAWN = 40  # lines of a stored picture
BARS = 200  # of a figure
LETTERS = 74  # of a text in a picture
NO_TEXT = "(the text was not recorded)"


def payload(report: Report) -> tuple[dict[str, Any], bytes]:
    """Every line of text, what those that made steps cost, and their steps."""
    lines, names, texts = report.lines, Names(), Names()
    place = {line: number for number, line in enumerate(lines["source"])}
    rows = [
        (file, number, -1 if text is None else texts.index(text), place.get(f"{about['file']}:{number}", -1))
        for file, about in enumerate(report.files)
        for number, text in about["lines"]
    ]
    keys = ["source", "step", "name", "layer"]
    named = report.rows[report.rows["source"] != ""]
    steps = named.groupby(keys, sort=False)["cycles"].sum().reset_index()
    texts_at = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    columns: dict[str, tuple[str, Any]] = {
        **{name: ("i4", texts_at[place]) for place, name in enumerate(("file", "number", "text", "line"))},
        **{name: ("f8", lines[name].to_numpy()) for name in ("cycles", "peak_bytes", "code_bytes")},
        "step_line": ("i4", [place[line] for line in steps["source"]]),
        "step": ("i4", steps["step"].to_numpy()),
        "step_name": ("i4", names.indexes(steps["name"])),
        "step_layer": ("i4", names.indexes(steps["layer"])),
        "step_cycles": ("f8", steps["cycles"].to_numpy()),
    }
    layout, buffer = pack(columns)
    data = {
        "sentence": report.sentence,
        "layout": layout,
        "files": [{"file": about["file"], "name": about["name"]} for about in report.files],
        "lines": [report.titles[line] for line in lines["source"]],
        "texts": texts.values,
        "strings": names.values,
        "total_cycles": report.total_cycles,
        "unattributed_cycles": report.unattributed_cycles,
        "no_text": NO_TEXT,
    }
    return data, buffer


class SourceView(View):
    """The lines: one that is chosen lights up its steps in the other views, what is chosen there marks its lines."""

    _esm = assets.stub("views/source.js")
    _css = assets.style("views/source")

    def _begin(self) -> None:
        self.send_payload(*payload(self._report))


def widget(report: Report, selection: Selection | None = None) -> SourceView:
    """The view in a notebook."""
    return SourceView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the dearest lines first."""
    columns = ["source", "text", "cycles", "fraction", "peak_bytes", "code_bytes"]
    lines = report.lines[columns].assign(source=list(report.titles.values()))
    return report_html(report, draw(report), table_html(lines))


def draw(report: Report) -> str:
    """The stored picture: the dearest lines in the order of the text, with bars of their cycles."""
    cost: dict[str, Any] = {row["source"]: row for row in records(report.lines.head(DRAWN))}
    shown = [
        (about["name"], number, text, cost[line])
        for about in report.files
        for number, text in about["lines"]
        if (line := f"{about['file']}:{number}") in cost
    ]
    files = {name for name, *_ in shown}
    picture = svg.Picture(960, 92 + 20 * max(1, len(shown)), "What each line of the code costs")
    for x, words in ((760, "cycles"), (830, "share"), (944, "fullest tile")):
        picture.text(x, 46, words, anchor="end")
    most = max([int(row["cycles"]) for row in cost.values()] or [1]) or 1
    y = 56.0
    for name, number, text, row in shown:
        _line(picture, y, f"{name}:{number}" if len(files) > 1 else str(number), text, row, most)
        y += 20
    if not shown:
        picture.text(16, y + 12, "No step names a line of code.")
    rest = report.unattributed_cycles / max(1, report.total_cycles)
    nowhere = f"of no line: {cycles_text(report.unattributed_cycles)} ({percent_text(rest)})"
    cut = shown_text(len(shown), len(report.lines), "line", "with most cycles, in the order of the text")
    picture.text(16, y + 20, "; ".join(part for part in (cut, nowhere) if part))
    return str(picture)


def _line(picture: svg.Picture, y: float, number: str, text: str | None, row: dict[str, Any], most: int) -> None:
    picture.box(16, y + 3, max(1.0, 92 * int(row["cycles"]) / most), 13, fill=ACCENT, radius=2)
    picture.text(162, y + 13, number if len(number) <= 9 else f"…{number[-8:]}", anchor="end")
    code = NO_TEXT if text is None else text
    indent = len(code) - len(code.lstrip())
    code = code if len(code) <= LETTERS else f"{code[: LETTERS - 1]}…"
    picture.text(174 + 6.5 * min(indent, 24), y + 13, code.lstrip(), "t")
    picture.text(760, y + 13, cycles_text(int(row["cycles"])).removesuffix(" cycles"), anchor="end")
    picture.text(830, y + 13, percent_text(row["fraction"]), anchor="end")
    picture.text(944, y + 13, bytes_text(int(row["peak_bytes"])), anchor="end")


def figure(report: Report) -> go.Figure:
    """Cycles of the dearest lines and of no line as a plain plotly figure."""
    import plotly.graph_objects as go

    lines = report.lines.head(BARS)
    rest = report.unattributed_cycles + int(report.lines["cycles"][BARS:].sum())
    left = len(report.lines) - len(lines)
    chart = go.Figure()
    chart.add_bar(
        x=[*lines["cycles"].tolist(), rest],
        y=[
            *(report.titles[line] for line in lines["source"]),
            f"{things_text(left, 'cheaper line')} and no line" if left else "no line",
        ],
        orientation="h",
        hovertext=[*lines["text"].tolist(), ""],
    )
    chart.update_layout(title=report.sentence, xaxis_title="cycles of all executions", yaxis_autorange="reversed")
    return chart


def _names_lines(profile: Profile) -> bool:
    return bool((profile.steps["source"] != "").any())


register(
    Face(
        name="source",
        title="Source",
        order=72,
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
        short="code",
        shown=_names_lines,
    )
)
