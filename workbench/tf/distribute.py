"""`tf.distribute`: the strategy whose scope is open, and ways to reduce what replicas have.

Tests: tests/ipu/strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

_OPEN: ContextVar[tuple[Any, ...]] = ContextVar("open strategies", default=())


class ReduceOp(Enum):
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


@contextmanager
def opened(strategy: Any) -> Iterator[Any]:
    """The strategy is the one in force inside, in this thread."""
    token = _OPEN.set((*_OPEN.get(), strategy))
    try:
        yield strategy
    finally:
        _OPEN.reset(token)


def has_strategy() -> bool:
    """Whether a strategy's scope is open."""
    return bool(_OPEN.get())


class ReplicaContext:
    """What a function that a strategy runs asks of the replica it runs on."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy

    @property
    def strategy(self) -> Any:
        """The strategy whose scope is open."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """As the strategy says: replicas of a program are inside it."""
        return int(self._strategy.num_replicas_in_sync)

    @property
    def replica_id_in_sync_group(self) -> int:
        """Always 0: what a program holds is the same on all its replicas."""
        return 0

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or mean of what replicas have; see the strategy's `reduce`."""
        return self._strategy.reduce(reduce_op, value)


def get_replica_context() -> ReplicaContext | None:
    """The context of the strategy whose scope was opened last; None outside any."""
    strategy = get_strategy()
    return None if strategy is None else ReplicaContext(strategy)


def get_strategy() -> Any:
    """The strategy whose scope was opened last; None outside any."""
    return _OPEN.get()[-1] if _OPEN.get() else None


__all__ = ["ReduceOp", "ReplicaContext", "get_replica_context", "get_strategy", "has_strategy", "opened"]
