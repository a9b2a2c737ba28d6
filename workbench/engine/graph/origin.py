"""Where a piece of the graph comes from: layer, call, direction and source line; it travels with everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.base.text import shown

Direction = Literal["forward", "backward", "recompute", "update"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "recompute", "backward", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The user's own words for a piece of the graph.

    `layer` is the path of the layer as the user named it (`"encoder_0/attention/query"`), empty outside any layer;
    the loss has the path `"loss"`. `layer_class` is its Keras class (`"Conv2D"`), empty when unknown. `call` numbers
    the calls of a shared layer from 1. `region` is the innermost named function (`"softmax"`, `"gelu"`, `"_var"`).
    `source` is the user's line (`"model.py:12"`). `shard` is the IPU that a scope puts it on, -1 without a scope.
    What may not be printed in a name stands there escaped, so that nothing further on has to mind it.
    """

    layer: str = ""
    layer_class: str = ""
    call: int = 1
    direction: Direction = "forward"
    region: str = ""
    source: str = ""
    shard: int = -1

    def __post_init__(self) -> None:
        if not (self.layer + self.region + self.source).isprintable():
            for field in ("layer", "region", "source"):
                object.__setattr__(self, field, shown(getattr(self, field)))

    def __str__(self) -> str:
        name = self.layer or "-"
        if self.call > 1:
            name += f"#{self.call}"
        where = f"@{self.shard}" if self.shard >= 0 else ""
        return f"{name}:{self.direction}" + (f":{self.region}" if self.region else "") + where


NOWHERE = Origin()
