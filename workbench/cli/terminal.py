"""What a command says: on any terminal or pipe, in the letters that this one has."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import sys
import unicodedata
from typing import Any

from workbench.base.text import shown
from workbench.cli.outcome import MISUSE, Outcome

MOST_LETTERS = 2_000  # of a complaint: a name as long as a book is told by its two ends
_PLAIN = {"µ": "u", "→": "->", "…": "...", "±": "+-", "·": ".", "Σ": "sum", "−": "-", "×": "x", "–": "-", "²": "^2"}
_HANDLER = "workbench.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Letters a stream cannot carry, in ASCII: `us` for `µs`, `->` for an arrow, escapes where there is no other way.

    An error handler as `codecs.register_error` takes them.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = [_PLAIN.get(letter) or _without_marks(letter) for letter in error.object[error.start : error.end]]
    return "".join(found), error.end


def _without_marks(letter: str) -> str:
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return plain if plain.isprintable() and plain else letter.encode("ascii", "backslashreplace").decode()


def prepare() -> None:
    """Let both streams carry every letter in some form, whatever the locale says."""
    codecs.register_error(_HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # replaced by something else, or closed
            stream.reconfigure(errors=_HANDLER)  # type: ignore[union-attr]


def one_line(text: object) -> str:
    """Text as one line of bounded length, with nothing in it that moves a cursor."""
    line = shown(re.sub(r"\s*\n\s*", " ", str(text)))
    half = MOST_LETTERS // 2
    return line if len(line) <= MOST_LETTERS else f"{line[:half]} … {line[-half:]}"


def complaint(text: object) -> str:
    """What the command says of what went wrong, in one line."""
    return f"workbench: {one_line(text)}"


def hint(text: str) -> None:
    """A line on stderr, of work that goes on; nobody needs to hear it."""
    _complain(one_line(text))


def told(outcome: Outcome) -> int:
    """Say what a command ended with and give its exit code; an output that is closed or full is misuse."""
    try:
        if outcome.result:
            print(outcome.result)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return unheard(error)
    _complain(outcome.complaint)
    return outcome.code


def unheard(error: OSError) -> int:
    """The output cannot be written: say so once, and keep Python from trying again at its end."""
    for stream in (sys.stdout, sys.stderr):
        _turned_away(stream)
    _complain(complaint(f"the output cannot be written to the end: {error.strerror or error}"))
    return MISUSE


def _complain(text: str) -> None:
    try:
        if text:
            print(text, file=sys.stderr)
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        _turned_away(sys.stderr)


def _turned_away(stream: Any) -> None:
    """What is still in a stream that cannot be written goes nowhere."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
