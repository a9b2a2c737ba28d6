"""The `tf.` names that programs for the IPU use, over Keras 3 and JAX: `from workbench import tf`.

A small namespace, not a framework: operations record functions of `keras.ops` and `jax.numpy`, a session runs them, and
what is placed on an IPU goes through the compiler of every other source, so that `session.profile` shows it.
"""

from __future__ import annotations

from typing import Any

from workbench.tf import _names


def __getattr__(name: str) -> Any:
    return _names.find("workbench.tf", name)


def __dir__() -> list[str]:
    return sorted(_names.PUBLIC)


__all__: list[str] = []
