"""Products are told while a model is traced, one by one, so that whoever wants to can plan them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from workbench.engine.graph import Node

Listener: TypeAlias = Callable[[Node], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("who hears of products", default=None)


@contextmanager
def products_told(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every product that is met inside, by a node of its own: it is in no graph, and may come to be
    in none."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def listener() -> Listener | None:
    """Who is told now."""
    return _LISTENER.get()
