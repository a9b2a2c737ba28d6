"""What every view is made of: a widget with a payload and the shared selection, and its stored face."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from workbench.base.text import markup
from workbench.widgets.kit import answers
from workbench.widgets.kit.library import Drawn
from workbench.widgets.kit.selection import Selection

if TYPE_CHECKING:
    import pandas as pd

    from workbench.profiler.report import Report

MAX_TABLE_ROWS = 8
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class View(Drawn):
    """A canvas fed by `data` (small JSON) and `buffer` (columns, see payload.pack), linked by `selection`.

    `live` is false where no kernel answers: then the view shows what it was given and offers nothing else. `asks` says
    that the view is of one profile, which can be asked for explanations and names.

    A subclass sends what its report shows in `_begin`, hears the page in `hear` and the selection by `follow`. It is
    the same widget when it `takes` another report: a page keeps something of every widget as long as its kernel lives.
    """

    data = traitlets.Dict().tag(sync=True)
    buffer = traitlets.Bytes(b"").tag(sync=True)
    selection = traitlets.Instance(Selection).tag(sync=True, **ipywidgets.widget_serialization)
    live = traitlets.Bool(True).tag(sync=True)
    asks = traitlets.Bool(False).tag(sync=True)

    def __init__(self, report: Any, selection: Selection | None = None) -> None:
        self._report = report
        self._followed: list[tuple[Callable[[Any], None], tuple[str, ...]]] = []
        super().__init__(selection=selection or Selection(), asks=hasattr(report, "profile"))
        self._begin()
        self.on_msg(lambda widget, message, buffers: self._message(message))

    def _begin(self) -> None:
        """Send what the report shows: of a new view, and of one that took another report."""

    def hear(self, message: Any) -> None:
        """A message of the page, which may be anything."""

    def follow(self, heard: Callable[[Any], None], *names: str) -> None:
        """Call `heard(change)` when a named field of the selection changes, of any that the view takes too."""
        self._followed.append((heard, names))
        self.selection.observe(heard, names)

    def take(self, report: Any, selection: Selection) -> None:
        """Show another report of the same kind in the place of this one; the page draws it anew."""
        self.send({"drawn": "leave"})
        for heard, names in self._followed:
            self.selection.unobserve(heard, names)
            selection.observe(heard, names)
        self._report = report
        with self.hold_sync():
            self.selection = selection
            self._begin()
        self.send({"drawn": "again"})

    def _message(self, message: Any) -> None:
        told = answers.answer(self._report.profile, message) if self.asks else None
        if told is not None:
            self.send(told)
        self.hear(message)

    def html(self) -> str:
        """The stored face of what this view shows."""
        return str(importlib.import_module(type(self).__module__).html(self._report))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return with_html(super()._repr_mimebundle_(**kwargs), self.html(), self._report.sentence)

    def send_payload(self, data: Mapping[str, Any], buffer: bytes) -> None:
        """Replace the drawn content in one message."""
        with self.hold_sync():
            self.buffer = buffer
            self.data = dict(data)


def with_html(made: Any, html: str, text: str) -> dict[str, Any]:
    """The widget view beside HTML and text, so that a stored notebook shows a picture though nothing runs."""
    data = made[0] if isinstance(made, tuple) else made
    view = {key: value for key, value in (data or {}).items() if key == WIDGET_VIEW}
    return {**view, "text/html": html, "text/plain": text}


def report_html(report: Report, svg: str, table: str = "") -> str:
    """The stored face of a report: picture, sentence and table, and how far its modelled numbers usually are off."""
    return picture_html(report.sentence, svg, table, report.errors)


def picture_html(sentence: str, svg: str, table: str = "", errors: Sequence[str] = ()) -> str:
    """A stored face: picture as an image with its summary sentence, and a data table; no markup from names. `errors`
    are lines under the sentence.

    Inline SVG and style sheets are dropped from notebooks that are not trusted; an image and inline styles are not.
    """
    source = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    alt = markup(sentence)
    small = "".join(f'<p style="margin:0;font-size:smaller">{markup(line)}</p>' for line in errors)
    return (
        f'<figure style="margin:0 0 12px"><img alt="{alt}" src="data:image/svg+xml;base64,{source}" '
        f'style="max-width:100%;height:auto"/><figcaption>{markup(sentence)}{small}</figcaption></figure>'
        + (f"<details><summary>Data table</summary>{table}</details>" if table else "")
    )


def table_html(frame: pd.DataFrame, rows: int = MAX_TABLE_ROWS) -> str:
    """The head of a table as escaped HTML, with a line that says how much was left out."""
    head = "".join(f'<th style="text-align:left">{markup(str(name))}</th>' for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{markup(_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.head(rows).itertuples(index=False)
    )
    left = len(frame) - rows
    more = f"<p>{left:,} more rows: .to_pandas() has them all</p>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
