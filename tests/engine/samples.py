"""Samples beside the tests of what they are of: every file of a folder names its own, and a contract collects them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import workbench.engine

TESTS = Path(__file__).parent
ENGINE = Path(workbench.engine.__file__).parent


def collected(room: str, what: str = "SAMPLES") -> dict[str, Any]:
    """All that the files of `tests/engine/<room>/samples` name so; two samples of one name are an error."""
    found: dict[str, Any] = {}
    for path in sorted((TESTS / room / "samples").rglob("*.py")):
        module = import_module(".".join(("tests", "engine", *path.relative_to(TESTS).with_suffix("").parts)))
        own: dict[str, Any] = getattr(module, what, {})
        assert not own.keys() & found.keys(), f"{path} repeats {sorted(own.keys() & found.keys())}"
        found |= own
    return found


def place(room: str, defined: type | Callable[..., Any]) -> str:
    """The file of samples for what is defined in a file of that room: the one of the same name."""
    source = Path(inspect.getsourcefile(inspect.unwrap(defined)) or "").resolve()
    return f"tests/engine/{room}/samples/{source.relative_to(ENGINE / room)}"
