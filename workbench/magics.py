"""Magics of a notebook: `%load_ext workbench`, then `%workbench` and `%%ipu_profile`.

`%workbench` opens the app; `%workbench NAME` with a model of the notebook, or a ready one. `%%ipu_profile` runs its
cell and shows the profile of its last value. Its options are arguments of `wb.profile`. Tests: tests/test_magics.py.
"""

from __future__ import annotations

import ast
from typing import Any

from workbench.errors import InputError

USAGE = "%%ipu_profile [-o NAME] [argument=value ...], such as batch_size=8 mode=training"
KEPT = "-o"


def load(shell: Any) -> None:
    """Register both magics with a shell of IPython."""
    shell.register_magic_function(lambda line: workbench(shell, line), "line", "workbench")
    shell.register_magic_function(lambda line, cell: ipu_profile(shell, line, cell), "cell", "ipu_profile")


def workbench(shell: Any, line: str) -> Any:
    """The app, with the value of an expression as its model, if there is one."""
    from workbench.api import app

    return app(_value(shell, line.strip())) if line.strip() else app()


def ipu_profile(shell: Any, line: str, cell: str) -> Any:
    """Run a cell and profile its last value, a model or a function that builds one; `-o NAME` keeps the profile."""
    from workbench.api import profile

    name, arguments = given(shell, line)
    result = shell.run_cell(cell.rstrip().removesuffix(";") + ";", store_history=False)
    result.raise_error()
    source = result.result
    if source is None:
        raise InputError(
            "the cell ends without a value", expected="a model, or a function that builds one", todo="name it last"
        )
    found = profile(source, **arguments)
    if name:
        shell.user_ns[name] = found
    return found


def given(shell: Any, line: str) -> tuple[str, dict[str, Any]]:
    """The name to keep the profile under, "" without one, and the arguments: literals, or names of the notebook."""
    words, name, found = line.split(), "", {}
    while words:
        word = words.pop(0)
        if word == KEPT and words and words[0].isidentifier():
            name = words.pop(0)
            continue
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier() or not text:
            raise InputError(f"%%ipu_profile was given {word!r}", expected=USAGE)
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
        raise InputError(f"%workbench was given {text!r}", expected="nothing, a variable, or the name of a ready model")
    return shell.user_ns.get(text, text)


__all__ = ["ipu_profile", "load", "workbench"]
