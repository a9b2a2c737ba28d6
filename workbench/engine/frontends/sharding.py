"""Shards: what is traced inside a scope, and its gradients, run on one IPU of several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from workbench.engine.frontends.describe.name_stack import shard_scope


@contextmanager
def ipu_shard(index: int) -> Iterator[None]:
    """Put what is traced inside on IPU `index`; of nested scopes the innermost decides."""
    with jax.named_scope(shard_scope(index)):
        yield
