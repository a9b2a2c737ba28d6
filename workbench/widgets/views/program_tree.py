"""The program drawn as a tree: what runs inside what, how often, and which part of the cycles it takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.collection import paused_collection
from workbench.base.units import cycles_text, percent_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.timeline.branches import Branch
from workbench.widgets.face import Face, register
from workbench.widgets.kit import assets, svg
from workbench.widgets.kit.base import View, report_html, table_html
from workbench.widgets.kit.palette import CAUSES, CONTROL
from workbench.widgets.kit.payload import Names, pack
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.profiler.reports.program_tree import ProgramTree as Report

SENT = 2_000  # branches that are sent at first
STORED = 4_000  # branches of a page without a kernel
DRAWN = 26  # of a stored picture
FOUND = 100  # branches that a search finds
LOOKED_AT = 200_000  # branches that a search looks at
KINDS = {**CAUSES, **CONTROL}
_KIND = {name: place for place, name in enumerate(KINDS)}
_CAUSE = {name: place for place, name in enumerate(CAUSES)}


class Rows:
    """Branches with numbers: the root is 0, and what is below a branch gets the next ones when it is first opened."""

    def __init__(self, report: Report) -> None:
        self._branches = report.branches
        self.all: list[Branch] = [report.branches.root]
        self.parent: list[int] = [-1]
        self._below: dict[int, range] = {}

    def open(self, row: int) -> range:
        """The rows below one."""
        found = self._below.get(row)
        if found is None:
            below = self._branches.below(self.all[row])
            found = self._below[row] = range(len(self.all), len(self.all) + len(below))
            self.all += below
            self.parent += [row] * len(below)
        return found

    def first(self, most: int) -> list[int]:
        """About `most` rows: level by level, what has more below than there is room for stays closed."""
        found, todo = [0], deque([0])
        while todo and len(found) < most:
            below = self.open(todo.popleft())
            if len(found) + len(below) <= most or len(found) == 1:
                found += below
                todo += [row for row in below if not self.all[row].is_leaf]
        return found

    def columns(self, rows: Iterable[int], names: Names) -> dict[str, tuple[str, Any]]:
        """What is sent of rows; `below` is how many are below, -1 where nobody has looked yet; cycles by cause of what
        is no step are of one execution and added up over the IPUs that work in it."""
        kept = list(rows)
        parts = [self.all[row] for row in kept]
        causes = [
            (row, _CAUSE[cause], cycles)
            for row, part in zip(kept, parts, strict=True)
            if not part.is_leaf
            for cause, cycles in self._branches.spent(part).items()
        ]
        return {
            "row": ("i4", kept),
            "parent": ("i4", [self.parent[row] for row in kept]),
            "kind": ("u1", [_KIND[part.kind] for part in parts]),
            "name": ("i4", names.indexes(part.name for part in parts)),
            "layer": ("i4", names.indexes(part.layer for part in parts)),
            "direction": ("i4", names.indexes(part.direction for part in parts)),
            "function": ("i4", names.indexes(part.function for part in parts)),
            "cycles": _whole([part.cycles for part in parts]),
            "runs": _whole([part.runs for part in parts]),
            "times": _whole([part.times for part in parts]),
            "start": _whole([part.start for part in parts]),
            "ipu": ("i2", [part.ipu for part in parts]),
            "step": _whole([part.step for part in parts]),
            "batch": _whole([part.micro_batch for part in parts]),
            "below": ("i4", [self._count(row) for row in kept]),
            "cause_row": ("i4", [row for row, _, _ in causes]),
            "cause": ("u1", [cause for _, cause, _ in causes]),
            "cause_cycles": _whole([cycles for _, _, cycles in causes]),
        }

    def _count(self, row: int) -> int:
        return 0 if self.all[row].is_leaf else len(self._below[row]) if row in self._below else -1

    def seek(self, words: list[str], step: int = -1, layer: str = "") -> Iterator[int]:
        """Rows in whose texts every word stands, or of a step, those of a layer first; what a function runs is looked
        at once for each layer that it runs for."""
        seen: set[tuple[str, str]] = set()
        todo, looked = [0], 0
        while todo and looked < LOOKED_AT:
            row, looked = todo.pop(), looked + 1
            part = self.all[row]
            if part.step == step if step >= 0 else words and matches(part, words):
                yield row
            if part.function:
                key = (part.function, part.layer)
                if key in seen:
                    continue
                seen.add(key)
            if not part.is_leaf:
                todo += reversed(self.open(row))

    def ways(self, rows: Iterable[int]) -> list[int]:
        """The rows on the ways to some and all beside them, each once."""
        parents = set[int]()
        for row in rows:
            at = self.parent[row]
            while at >= 0 and at not in parents:
                parents.add(at)
                at = self.parent[at]
        return sorted({0, *(each for parent in parents for each in self.open(parent))})


def matches(part: Branch, words: list[str]) -> bool:
    """Whether every word stands in a branch's kind, name, layer or function, in any case."""
    text = "\n".join((KINDS[part.kind]["label"], part.name, part.layer, part.function)).casefold()
    return all(word in text for word in words)


def _whole(values: list[int]) -> tuple[str, Any]:
    """A column of whole numbers in as few bytes as they need."""
    return ("i4" if max(values, default=0) < 2**31 else "f8"), np.array(values, dtype=np.float64)


def rows_of(rows: Rows, chosen: Iterable[int]) -> tuple[dict[str, Any], bytes]:
    """Rows as they are sent: their layout and texts, and the buffer."""
    names = Names()
    layout, buffer = pack(rows.columns(chosen, names))
    return {"layout": layout, "strings": names.values}, buffer


@paused_collection()
def payload(report: Report, rows: Rows, most: int = SENT) -> tuple[dict[str, Any], bytes]:
    """The first rows, and how often each function runs."""
    sent, buffer = rows_of(rows, rows.first(most))
    data = {
        "sentence": report.sentence,
        "total_cycles": report.profile.total_cycles,
        "ipus": report.profile.ipus,
        "clock_hz": float(report.profile.target["clock_hz"]),
        "kinds": list(KINDS.values()),
        "kind_names": list(KINDS),
        "calls": {name: [int(runs), int(cycles)] for name, runs, cycles in _calls(report)},
        **sent,
    }
    return data, buffer


def _calls(report: Report) -> Iterator[tuple[str, int, int]]:
    bodies = report.profile.timeline.functions
    return ((name, runs, bodies[name].cycles) for name, runs in report.branches.calls.items())


class ProgramTreeView(View):
    """The tree; what is below a branch that was not sent is asked for when it is opened, sought or chosen elsewhere."""

    _esm = assets.stub("views/program_tree.js")
    _css = assets.style("views/program_tree")

    def _begin(self) -> None:
        self.rows = Rows(self._report)
        self.send_payload(*payload(self._report, self.rows))

    def hear(self, message: Any) -> None:
        """`{"open": row}`, `{"seek": words, "asked": n}` or `{"step": id, "layer": name, "asked": n}`."""
        asked = message if isinstance(message, dict) else {}
        if "open" in asked:
            self._open(asked["open"])
        elif isinstance(asked.get("seek"), str):
            found = self.rows.seek(asked["seek"].casefold().split())
            self._answer_with([row for _, row in zip(range(FOUND), found, strict=False)], asked.get("asked"))
        elif type(asked.get("step")) is int and asked["step"] >= 0:
            places = [row for _, row in zip(range(FOUND), self.rows.seek([], step=asked["step"]), strict=False)]
            mine = [row for row in places if self.rows.all[row].layer == asked.get("layer")] or places
            self._answer_with(mine[:1], asked.get("asked"))

    def _open(self, row: Any) -> None:
        try:
            below = self.rows.open(whole("open", row, least=0, most=len(self.rows.all) - 1))
        except InputError:
            return  # nothing that the page asks for
        data, buffer = rows_of(self.rows, below)
        self.send({"tree": data, "opened": row, "below": len(below)}, buffers=[buffer])

    def _answer_with(self, found: list[int], asked: Any) -> None:
        data, buffer = rows_of(self.rows, self.rows.ways(found))
        self.send({"tree": data, "matches": found, "asked": asked if type(asked) is int else 0}, buffers=[buffer])


def widget(report: Report, selection: Selection | None = None) -> ProgramTreeView:
    """The view in a notebook."""
    return ProgramTreeView(report, selection)


def stored(report: Report) -> dict[str, Any]:
    """State of the view for a page without a kernel."""
    data, buffer = payload(report, Rows(report), STORED)
    return {"data": data, "buffer": buffer}


def html(report: Report) -> str:
    """Picture and table, the first levels of the tree."""
    return report_html(report, draw(report), table_html(_listed(report)))


def _listed(report: Report) -> pd.DataFrame:
    columns = ["kind", "name", "runs", "cycles", "total_cycles", "share"]
    return report.to_branches(1).sort_values("total_cycles", ascending=False, kind="stable")[columns]


def draw(report: Report) -> str:
    """The stored picture: the dearest branches, indented, with bars of their cycles by cause."""
    rows = report.dearest(DRAWN)
    lines = len(rows) + sum(left > 0 for _, _, left in rows)
    picture = svg.Picture(960, 96 + 22 * lines, "The program as a tree, its dearest branches unfolded")
    for x, text in ((560, "runs"), (680, "cycles of all"), (750, "share")):
        picture.text(x, 46, text, anchor="end")
    y = 52.0
    used: dict[str, Any] = {}
    closing: list[tuple[int, int]] = []
    for place, (level, part, left) in enumerate(rows):
        _line(report, picture, level, part, y, used)
        y += 22
        if left:
            closing.append((level, left))
        following = rows[place + 1][0] if place + 1 < len(rows) else -1
        while closing and closing[-1][0] >= following:
            depth, more = closing.pop()
            picture.text(32 + 14 * (depth + 1), y + 13, f"and {more:,} more")
            y += 22
    picture.legend(16, y + 16, used.values(), 940)
    return str(picture)


def _line(report: Report, picture: svg.Picture, level: int, part: Branch, y: float, used: dict[str, Any]) -> None:
    total = max(1, report.profile.total_cycles)
    x = 16 + 14 * level
    kind = KINDS[part.kind]
    picture.box(x, y + 4, 10, 10, fill=picture.fill(kind), radius=2)
    name = f"{part.name or kind['label']}{f' × {part.times:,}' if part.times > 1 else ''}"
    room = 66 - 2 * level
    picture.text(x + 16, y + 13, name if len(name) <= room else f"{name[: room - 1]}…", "t")
    picture.text(560, y + 13, f"{part.runs:,}", anchor="end")
    picture.text(680, y + 13, cycles_text(part.total_cycles).removesuffix(" cycles"), anchor="end")
    picture.text(750, y + 13, percent_text(part.total_cycles / total), anchor="end")
    spent = report.branches.spent(part)
    wide, at = 180 * min(1.0, part.total_cycles / total), 764.0
    for cause, cycles in spent.items():
        size = wide * cycles / max(1, sum(spent.values()))
        picture.box(at, y + 4, max(0.4, size), 11, fill=picture.fill(CAUSES[cause]))
        at += size
        used[cause] = CAUSES[cause]


def figure(report: Report) -> go.Figure:
    """The dearest branches as a plain plotly figure: cycles of all executions by cause."""
    import plotly.graph_objects as go

    rows = [(level, part) for level, part, _ in report.dearest(DRAWN)]
    labels = [f"{'· ' * level}{part.name or KINDS[part.kind]['label']}" for level, part in rows]
    chart = go.Figure()
    for cause, paint in CAUSES.items():
        cycles = []
        for _, part in rows:
            spent = report.branches.spent(part)
            cycles.append(part.total_cycles * spent.get(cause, 0) / max(1, sum(spent.values())))
        if any(cycles):
            chart.add_bar(
                x=cycles, y=list(range(len(rows))), orientation="h", name=paint["label"], marker_color=paint["colour"]
            )
    chart.update_layout(
        title=report.sentence,
        barmode="stack",
        xaxis_title="cycles of all executions, by cause over the IPUs that work",
        yaxis={"autorange": "reversed", "tickvals": list(range(len(rows))), "ticktext": labels},
    )
    return chart


register(
    Face(
        name="program_tree",
        title="Program tree",
        order=55,
        short="tree",
        widget=widget,
        svg=draw,
        html=html,
        figure=figure,
        stored=stored,
    )
)
