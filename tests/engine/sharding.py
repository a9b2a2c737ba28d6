"""Layers of a Keras model on one IPU of several: a named scope, as `ipu.scopes.ipu_shard` gives to operations."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax

from workbench.engine.frontends.describe.name_stack import shard_scope


def ipu_shard(index: int) -> AbstractContextManager[object]:
    """Put what is traced inside on IPU `index`; of nested scopes the innermost decides."""
    return jax.named_scope(shard_scope(index))
