"""Code that a button copies, with what it is for above it."""

from __future__ import annotations

import anywidget
import traitlets

from workbench.widgets.kit import assets


class AppCode(anywidget.AnyWidget):
    """`code` shown as it is; `problem` stands in its place while there is none."""

    _esm = assets.javascript("code")
    _css = assets.styles(("app", "code"))
    title = traitlets.Unicode("").tag(sync=True)
    code = traitlets.Unicode("").tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
