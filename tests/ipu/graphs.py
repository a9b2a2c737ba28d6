"""What tests of graphs share: a configured machine of four tiles, and running a computation on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench import ipu, tf


def configure(ipus: int = 1, **options: Any) -> ipu.config.IPUConfig:
    """A configuration of small IPUs, in force; options by their full name."""
    config = ipu.config.IPUConfig()
    config.from_dict({**config.to_dict(), "auto_select_ipus": ipus, "ipu_model.tiles_per_ipu": 4, **options})
    config.configure_ipu_system()
    return config


def compiled(computation: Callable[..., Any], inputs: Sequence[Any] = ()) -> Any:
    """The computation compiled for the first IPU device."""
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(computation, list(inputs))


def run(computation: Callable[..., Any], *values: Any) -> tuple[Any, Any]:
    """What the computation gives for arrays, and the session it ran in."""
    values = tuple(np.asarray(value, np.float32) if isinstance(value, list) else value for value in values)
    feeds = [tf.placeholder(np.asarray(value).dtype, np.shape(value)) for value in values]
    result = compiled(computation, feeds)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session.run(result, dict(zip(feeds, values, strict=True))), session
