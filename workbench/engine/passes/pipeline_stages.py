"""The stages of a pipelined entry: their calls, what arrives from elsewhere and what waits in FIFOs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.engine.graph import Node
from workbench.engine.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A buffer on a stage's IPU for a value made elsewhere, and the tensor of the neighbour that fills it."""

    buffer: Tensor
    neighbour: int
    source: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Fifo:
    """What is kept of `current` past the end of a column: in `left` is what was current `slots` columns before.

    `stash` is the variable of the slots, None when there are none.
    """

    current: Tensor
    left: Tensor
    stash: int | None = None


@dataclass(slots=True)
class Stage:
    """The calls of one stage and what travels between them."""

    number: int
    forward: Node
    backward: Node | None = None
    update: Node | None = None
    received: dict[int, Arrival] = field(default_factory=dict)  # id(value made elsewhere) → its buffer here
    fifos: list[Fifo] = field(default_factory=list)
    stashed: dict[tuple[int, ...], Tensor] = field(default_factory=dict)  # variables → what backward reads instead


def stages_of(nodes: Sequence[Node]) -> list[Stage]:
    """The stages of an entry's calls, in order."""
    found: dict[int, Stage] = {}
    for node in nodes:
        number = int(node.attr("stage", 0))
        direction = str(node.attr("direction", node.origin.direction))
        if direction == "forward":
            found[number] = Stage(number=number, forward=node)
        elif direction == "backward":
            found[number].backward = node
        else:
            found[number].update = node
    return [found[number] for number in sorted(found)]
