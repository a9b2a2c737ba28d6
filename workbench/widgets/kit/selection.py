"""The one selection that linked views share, in the kernel and in the browser."""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets

FIELDS = ("ipu", "tile", "step", "position", "variable", "layer", "micro_batch", "steps")


class Selection(ipywidgets.Widget):
    """What is chosen at the moment; `None` where nothing is.

    Every linked view holds this same widget model, so a click is seen by the others without a round trip to the
    kernel, and `selection.observe(callback, "step")` hears it in Python. `kept`: the name under which a page remembers
    which part of a picture was zoomed to, for pictures that take the place of these; "" remembers nothing.
    """

    ipu = traitlets.Int(None, allow_none=True).tag(sync=True)
    tile = traitlets.Int(None, allow_none=True).tag(sync=True)
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    position = traitlets.Int(None, allow_none=True).tag(sync=True)
    variable = traitlets.Int(None, allow_none=True).tag(sync=True)
    layer = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    micro_batch = traitlets.Int(None, allow_none=True).tag(sync=True)
    kept = traitlets.Unicode("").tag(sync=True)
    steps = traitlets.List(traitlets.Int(), None, allow_none=True).tag(sync=True)  # of a line of code, say

    def chosen(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}

    def clear(self) -> None:
        """Choose nothing."""
        with self.hold_sync():
            for name in FIELDS:
                setattr(self, name, None)
