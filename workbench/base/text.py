"""Names that users give, in text: nothing in them moves a cursor, turns the line round or is a formula of a table."""

from __future__ import annotations

import difflib
import html
import unicodedata
from collections.abc import Iterable
from typing import Any

LONGEST = 200  # of what is shown of a value

# Marks of direction do as they say where they are shown, not where they stand.
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROL = frozenset(("Cc", "Cs", "Zl", "Zp"))  # controls, halves of characters, ends of lines and paragraphs
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def shown(text: str, keep: str = "") -> str:
    """Text as it may be printed: controls, marks of direction and lone surrogates as `\\x1b`; all in `keep` stay."""
    if text.isprintable():  # none of them is
        return text
    return "".join(letter if letter in keep or not _is_hidden(letter) else _escaped(letter) for letter in text)


def _is_hidden(letter: str) -> bool:
    return letter in _DIRECTION or unicodedata.category(letter) in _CONTROL


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def short(value: Any) -> str:
    """A value as an error shows it: its `repr`, cut where that is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def meant(name: object, known: Iterable[str]) -> str:
    """The name that one which nobody knows is close to, as a question; "" where there is none."""
    close = difflib.get_close_matches(str(name).lower(), list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def no_attribute(holder: str, name: str, known: Iterable[str], instead: str = "") -> AttributeError:
    """The error for a name that nothing has, with the public one that was meant: IPython shows no hint of Python's.

    `instead`: what has it under another name, where that is known; else a name that is spelled like it is looked for.
    """
    close = "" if name.startswith("_") else meant(name, (each for each in known if not each.startswith("_")))
    hint = instead or close
    return AttributeError(f"{holder} has no attribute {name!r}{hint and f': {hint}'}", name=name)


def literal(value: Any) -> str:
    """A value as Python source that makes it again, with nothing hidden in it; text in double quotes where it may."""
    if type(value) is not str or '"' in value:
        return repr(value)
    return '"' + repr("'" + value)[2:]  # of a text with an apostrophe in it `repr` writes double quotes


def markup(text: str) -> str:
    """Text as it may stand in HTML or SVG, in quotes too; ends of lines and tabulators stay."""
    return html.escape(shown(text, keep="\n\t"))


def cell(text: str) -> str:
    """Text as a cell of a table of a spreadsheet: a leading apostrophe keeps it from being a formula."""
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def of_cell(text: str) -> str:
    """What `cell` was given."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text
