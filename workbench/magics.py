"""Magics of a notebook: `%load_ext workbench`, then `%workbench` and `%%ipu_profile`.

`%workbench` opens the app; `%workbench NAME` with a model of the notebook, or a ready one. `%%ipu_profile` runs its
cell and shows the profile of its last value. Its options are arguments of `wb.profile`. Tests: tests/test_magics.py.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable, Iterator
from keyword import iskeyword
from typing import Any

from workbench.errors import InputError

USAGE = "%%ipu_profile [-o NAME] [argument=value ...], such as batch_size=8 mode=training, without blanks in a value"
KEPT = "-o"


def load(shell: Any) -> None:
    """Register both magics with a shell of IPython."""
    shell.register_magic_function(_of(shell, workbench), "line", "workbench")
    shell.register_magic_function(_of(shell, ipu_profile), "cell", "ipu_profile")


def _of(shell: Any, magic: Callable[..., Any]) -> Callable[..., Any]:
    """A magic of one shell, with the text that `?` behind its name shows."""

    def call(*words: str) -> Any:
        return magic(shell, *words)

    call.__doc__ = magic.__doc__
    return call


def workbench(shell: Any, line: str) -> Any:
    """Open the app: `%workbench`, or `%workbench NAME` with a model of the notebook or a ready one, as `resnet50`."""
    from workbench.api import app

    return app(_value(shell, line.strip())) if line.strip() else app()


def ipu_profile(shell: Any, line: str, cell: str) -> Any:
    """Run the cell and show the profile of its last value, a model, a function that builds one or a ready name.

    `%%ipu_profile [-o NAME] [argument=value ...]`, such as `%%ipu_profile -o mine batch_size=8 mode=training`:
    arguments of `wb.profile` without blanks in them; a value is a literal, a variable of the notebook or a word.
    `-o NAME` keeps the profile in the notebook under this name.
    """
    from workbench.api import COMPILED_WITH, profile
    from workbench.executable.values import check_names

    name, arguments = given(shell, line)
    check_names("%%ipu_profile", arguments, COMPILED_WITH)  # before the cell has worked for them
    with _values_kept(shell) as values:
        shell.run_cell(cell, store_history=False).raise_error()
    source = values[-1] if values else None
    if source is None:
        raise InputError(
            "the cell ends without a value", expected="a model, or a function that builds one", todo="name it last"
        )
    found = profile(source, **arguments)
    if name:
        shell.user_ns[name] = found
    return found


@contextlib.contextmanager
def _values_kept(shell: Any) -> Iterator[list[Any]]:
    """What cells would show is kept instead: the profile is shown in its place."""
    values: list[Any] = []
    before, of_shell = sys.displayhook, shell.display_trap.hook
    sys.displayhook = shell.display_trap.hook = values.append
    try:
        yield values
    finally:
        sys.displayhook, shell.display_trap.hook = before, of_shell


def given(shell: Any, line: str) -> tuple[str, dict[str, Any]]:
    """The name to keep the profile under, "" without one, and the arguments: literals, or names of the notebook."""
    words, name, found = line.split(), "", {}
    while words:
        word = words.pop(0)
        if word == KEPT and words and words[0].isidentifier() and not iskeyword(words[0]):
            if name:
                raise InputError(f"%%ipu_profile was given {KEPT} twice", expected="one name", todo="leave one out")
            name = words.pop(0)
            continue
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier() or not text:
            raise InputError(f"%%ipu_profile was given {word!r}", expected=USAGE)
        if key in found:
            raise InputError(f"%%ipu_profile was given {key} twice", expected="one value", todo="leave one out")
        found[key] = _literal(shell, text)
    return name, found


def _literal(shell: Any, text: str) -> Any:
    """What is written: a literal, a variable of the notebook, else the word itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return shell.user_ns.get(text, text)


def _value(shell: Any, text: str) -> Any:
    """A variable of the notebook, or the name of a ready model."""
    if not text.isidentifier() and not text.replace("-", "_").isidentifier():
        bare = text.strip("'\"")
        todo = (
            f"leave the quotes out: %workbench {bare}" if bare != text and bare.replace("-", "_").isidentifier() else ""
        )
        raise InputError(
            f"%workbench was given {text!r}", expected="nothing, a variable, or the name of a ready model", todo=todo
        )
    return shell.user_ns.get(text, text)


__all__ = ["ipu_profile", "load", "workbench"]
