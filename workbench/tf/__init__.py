"""The `tf.` names that programs for the IPU use, over Keras 3 and JAX: `from workbench import tf`.

A small namespace, not a framework: operations record functions of `keras.ops` and `jax.numpy`, a session runs them, and
what is placed on an IPU goes through the compiler of every other source, so that `session.profile` shows it. Keras and
JAX are loaded with the first name that is used.

`_names` is the table of public names; `_graph` records, `_ops` are what is recorded, `_session` runs it, `_function`
makes programs of Python functions (`tf.function`), and `_hooks` are told what stands above. Of `ipu`, only `config` and
`devices` are imported. Tests: tests/tf, and tests/ipu.
"""

from __future__ import annotations

from typing import Any

__version__ = "2.6.3"  # of the TensorFlow that the SDK's last release has, whose programs ask which it is


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'workbench.tf' has no attribute {name!r}")
    from workbench.tf import _names

    return _names.find("workbench.tf", name)


def __dir__() -> list[str]:
    from workbench.tf import _names

    return sorted(_names.PUBLIC)


__all__ = ["__version__"]
