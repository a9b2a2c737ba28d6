"""Code that a button copies, with what it is for above it."""

from __future__ import annotations

from typing import Any

import traitlets

from workbench.profiler.advice.snippet import request_code
from workbench.widgets.app.form.source import Choice
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn


class AppCode(Drawn):
    """`code` shown as it is; `problem` stands in its place while there is none."""

    _esm = assets.stub("app/form/code.js")
    _css = assets.style("app/app", "app/form/code")
    title = traitlets.Unicode("").tag(sync=True)
    code = traitlets.Unicode("").tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)


def code_of(choice: Choice, request: Any) -> str:
    """The lines that compile what is asked for, with those that make its model where the app knows them."""
    head = [choice.code] if choice.code else []
    return "\n\n".join([*head, f"import workbench as wb\n{_spaced(request_code(request, choice.variable))}"])


def _spaced(code: str) -> str:
    """Imports together, then an empty line before what is called."""
    return code if code.startswith("from ") else f"\n{code}"
