"""Code that a button copies, with what it is for above it."""

from __future__ import annotations

import traitlets

from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn


class AppCode(Drawn):
    """`code` shown as it is; `problem` stands in its place while there is none."""

    _esm = assets.stub("app/code.js")
    _css = assets.style("app/app", "app/code")
    title = traitlets.Unicode("").tag(sync=True)
    code = traitlets.Unicode("").tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
