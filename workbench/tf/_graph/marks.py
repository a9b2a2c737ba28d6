"""Names that scopes leave in a traced program, for the compiler and for the layers of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from workbench.engine.frontends.describe.name_stack import (
    HOST_REGION,
    UPDATE_SCOPE,
    attribute_scope,
    line_scope,
    shard_scope,
)
from workbench.tf._graph.graph import Scopes


def scope_names(scopes: Scopes, updates: bool, line: str = "") -> Iterator[str]:
    """The scopes of an operation, outermost first: its line, update, stage, shard, attributes, the user's names."""
    if line:
        yield line_scope(line)
    if updates:
        yield UPDATE_SCOPE
    if scopes.stage is not None:
        yield stage_scope(scopes.stage)
    if scopes.shard is not None:
        yield shard_scope(scopes.shard)
    for key, value in scopes.attributes:
        yield attribute_scope(key, value)
    yield from scopes.names


def stage_scope(number: int) -> str:
    """The layer everything of a pipeline's stage is below."""
    return f"stage{number}"


def host_region(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function as one call that the compiler leaves on the host, with copies to it and back."""

    def on_host(*values: Any) -> Any:
        return function(*values)

    on_host.__name__ = f"{HOST_REGION}{name}"
    compiled: Callable[..., Any] = jax.jit(on_host)
    return compiled
