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


def get_strategy() -> Any:
    """The strategy whose scope was opened last; None outside any."""
    return _OPEN.get()[-1] if _OPEN.get() else None


__all__ = ["ReduceOp", "get_strategy", "has_strategy", "opened"]
