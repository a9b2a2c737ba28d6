"""A pipeline cut by hand: its layers as a ribbon, cuts that move, and what each stage would then cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from workbench.base.text import shown
from workbench.errors import WorkbenchError
from workbench.splits.by_hand import ByHand
from workbench.widgets.kit import assets
from workbench.widgets.kit.library import Drawn


class Ribbon(Drawn):
    """`data` holds the layers, what they cost, the compiled cuts and their figures; `problem` why cuts cannot be.

    `compile(names)` is called with the layers to cut after when the moved cuts are to be compiled.
    """

    _esm = assets.stub("app/ribbon.js")
    _css = assets.style("app/app", "app/ribbon")
    data = traitlets.Dict().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)

    def __init__(self, found: ByHand, compile: Callable[[list[str]], None]) -> None:
        self.found, self._compile = found, compile
        super().__init__(data=content(found))
        self.on_msg(self._hear)

    def _hear(self, _: Any, message: Any, buffers: Any) -> None:
        if not isinstance(message, dict) or "cuts" not in message:
            return
        try:
            names = self.found.stages(message["cuts"])
        except WorkbenchError as error:
            self.problem = shown(str(error))
        else:
            self.problem = ""
            self._compile(names)


def content(found: ByHand) -> dict[str, Any]:
    """What the ribbon draws: lists by layer and by stage; costs in cycles of a call and bytes of the fullest tile."""
    costs = found.costs
    by_layer = ("cycles", "copy", "fixed", "stash", "work", "inputs")
    return {
        "names": [shown(name) for name in found.names],
        "cuts": list(found.cuts),
        "capacity": found.capacity_bytes,
        "measured": {"cycles": list(found.cycles), "bytes": list(found.bytes)},
        "depth": list(costs.depth),
        **{name: [float(each) for each in getattr(costs, name)] for name in by_layer},
    }
