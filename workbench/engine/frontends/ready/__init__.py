"""Ready models by name and size, built without weights when they are traced.

`models` is the table of names; `encoder` and `decoder` are Transformers, `layered` the others. Imports nothing of the
other steps. Tests: tests/engine/frontends/ready.
"""

from workbench.engine.frontends.ready.ready import (
    READY_NAMES,
    ReadyModel,
    ready,
)

__all__ = [
    "READY_NAMES",
    "ReadyModel",
    "ready",
]
