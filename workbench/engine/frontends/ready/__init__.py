"""Ready models by name and size, built without weights when they are traced."""

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
