"""The widget that brings the JavaScript of all views to a page, once a kernel; and what every widget of ours builds on.

Its state holds the sources, packed to a third, and their digest. Every other widget refers to it, so that a page which
restores a view restores it too.
"""

from __future__ import annotations

from typing import Any, ClassVar

import anywidget
import ipywidgets
import traitlets

from workbench.widgets.kit import assets


class Library(anywidget.AnyWidget):
    """All modules by path, as gzip of JSON; nothing of it is drawn."""

    _esm = assets.text("kit/library.js")
    sources = traitlets.Bytes(b"").tag(sync=True)
    digest = traitlets.Unicode("").tag(sync=True)
    _shared: ClassVar[Library | None] = None

    @classmethod
    def shared(cls) -> Library:
        """The one of this kernel; a new one where a notebook has closed all widgets."""
        if cls._shared is None or cls._shared.comm is None:
            cls._shared = cls(sources=assets.packed(), digest=assets.digest())
        return cls._shared


class Drawn(anywidget.AnyWidget):
    """A widget drawn by one module of the library: a subclass sets `_esm = assets.stub(...)` and its style."""

    library = traitlets.Instance(Library).tag(sync=True, **ipywidgets.widget_serialization)

    @traitlets.default("library")
    def _library(self) -> Any:
        return Library.shared()
