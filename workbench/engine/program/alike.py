"""Steps that do the same, for what follows from what steps do alone: it is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.base.identity import Selves
from workbench.engine.program.program import DoExchange, Leaf, OnTileExecute, Sync


class StepsAlike:
    """Steps in a row as a key. It equals that of others with the very vertices and per-tile bytes, whatever their
    names, variables and IPU.

    `are_told`: all of them are vertices, exchanges within an IPU and barriers. Of others nothing is known to be alike.
    """

    __slots__ = ("_said", "are_told", "steps")

    def __init__(self, steps: Iterable[Leaf]) -> None:
        self.steps = tuple(steps)
        self.are_told = all(isinstance(step, OnTileExecute | DoExchange | Sync) for step in self.steps)
        self._said = Selves(said for step in self.steps for said in _said(step))

    def __hash__(self) -> int:
        return hash(self._said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StepsAlike) and self._said == other._said


def _said(step: Leaf) -> tuple[object, ...]:
    if isinstance(step, OnTileExecute):
        return (step.compute_set.groups,)
    if isinstance(step, DoExchange):
        exchange = step.exchange
        return (exchange.sent_bytes, exchange.received_bytes, exchange.fragments, exchange.shared_bytes)
    return (Sync, step.scope) if isinstance(step, Sync) else (step,)
