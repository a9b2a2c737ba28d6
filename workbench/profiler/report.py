"""What every report has: a name, data, a table, text, one sentence; and its drawn faces, found in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.base.checked import called, checked_methods
from workbench.base.collection import paused_collection
from workbench.base.registry import faces
from workbench.base.text import markup, meant, short, shown
from workbench.errors import InputError, WorkbenchError
from workbench.profiler.fidelity import KINDS, NOT_KNOWN, TypicalError, error_of

if TYPE_CHECKING:
    import pandas as pd


MAX_CELL = 60


def face(name: str) -> Any:
    """The drawn face registered under a name; the views are loaded when the first one is asked for."""
    return faces.get(name)


class Report:
    """Base of all reports. A report holds data and never draws; `figure`, `svg` and `widget` ask its registered face.

    A face is an object with those three methods and `mimebundle`, each given the report. `kinds` are the kinds of
    modelled numbers that it tells, of `fidelity.KINDS`: how far those usually are off stands under it.
    """

    name: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        checked_methods(cls)

    @property
    def data(self) -> dict[str, Any]:
        """The content as JSON data."""
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """The content in one sentence, also the alternative text of its picture."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """The content as one table."""
        raise NotImplementedError

    def to_text(self) -> str:
        """The content as plain text, the sentence first."""
        text = f"{shown(self.sentence)}\n\n{text_table(self.to_pandas())}".rstrip()
        return "\n".join([text, *self.errors])

    def known_error(self, kind_of_number: str) -> TypicalError | None:
        """How far published numbers of a kind are from modelled ones; None where that is not known.

        Errors: `InputError` for no kind of `fidelity.KINDS`, nor of those that the profile knows besides.
        """
        told = {} if self.told_of is None else self.told_of.meta.get("typical_errors", {})
        known = list(dict.fromkeys((*KINDS, *told)))
        if not isinstance(kind_of_number, str) or kind_of_number not in known:
            problem, expected = f"kind_of_number is {short(kind_of_number)}", f"one of: {', '.join(known)}"
            raise InputError(problem, expected=expected, todo=meant(kind_of_number, known))
        return error_of(told, kind_of_number)

    @property
    def told_of(self) -> Any:
        """The `Profile` whose modelled numbers it tells; None where there is none."""
        several = getattr(self, "profiles", ())  # of a comparison, which are of one version
        return several[0] if several else getattr(self, "profile", None)

    @property
    def errors(self) -> list[str]:
        """A line for each kind of number that it tells: how far modelled ones usually are off, or that it is not
        known; and what gives formula, inputs and source of such a number. None where nothing was compiled."""
        if self.told_of is None:
            return []
        found = [f"Error  {KINDS[kind]}: {self.known_error(kind) or NOT_KNOWN}" for kind in self.kinds]
        apart = [f"Taken apart by profile.explain({self.explained_by})"] if self.explained_by else []
        return [*found, *apart]

    @property
    def explained_by(self) -> str:
        """What `profile.explain` is given for formula, inputs and source of a number of this report; "" for none."""
        return ""

    def figure(self) -> Any:
        """A plotly figure."""
        return face(self.name).figure(self)

    def svg(self) -> str:
        """The picture as SVG text."""
        return str(face(self.name).svg(self))

    @paused_collection()
    def widget(self, **options: Any) -> Any:
        """The live view."""
        return called(f"the view of {self.name}", partial(face(self.name).widget, self), **options)

    def __str__(self) -> str:
        return shown(self.to_text(), keep="\n")

    @paused_collection()
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            drawn = face(self.name)
        except (WorkbenchError, ImportError):
            return {"text/plain": str(self), "text/html": plain_html(self)}
        return dict(drawn.mimebundle(self))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings by column name."""
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None)]


def plain_html(report: Report) -> str:
    """The text of a report as HTML in which every name is text."""
    return f"<pre>{markup(report.to_text())}</pre>"


def text_table(frame: pd.DataFrame, rows: int = 20) -> str:
    """The head of a table as aligned text, with a line that says how many rows were left out.

    Long texts are cut at their end; in the middle where those of a column would then be the same.
    """
    if frame.empty:
        return ""
    texts = [[_text(value) for value in row] for row in frame.head(rows).itertuples(index=False)]
    columns = [_cut(column) for column in zip(*texts, strict=True)]
    cells = [[str(name) for name in frame.columns], *zip(*columns, strict=True)]
    number = [all(_is_number(row[place]) for row in cells[1:]) for place in range(len(cells[0]))]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    lines = [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, number, strict=True)
        ).rstrip()
        for row in cells
    ]
    left = len(frame) - rows
    return "\n".join([*lines, f"... {left:,} more rows"] if left > 0 else lines)


def _text(value: Any) -> str:
    """Numbers of people's sizes have their digits: bytes and samples a second beside those that are whole."""
    if not isinstance(value, float):
        return shown(str(value))
    plain = 1e4 <= abs(value) < 1e7 or (value.is_integer() and abs(value) < 1e9)
    return f"{value:.0f}" if plain else f"{value:.4g}"


def _cut(texts: Sequence[str]) -> Sequence[str]:
    """Texts short enough for a cell, as far as those that differ still do."""
    for before, behind in ((MAX_CELL - 1, 0), (MAX_CELL // 3, MAX_CELL - 1 - MAX_CELL // 3)):
        found = [_without_middle(text, before, behind) for text in texts]
        if len(set(found)) == len(set(texts)):
            return found
    return texts


def _without_middle(text: str, before: int, behind: int) -> str:
    return text if len(text) <= MAX_CELL else f"{text[:before]}…{text[len(text) - behind :]}"


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "").replace("e+", "").isdigit()
