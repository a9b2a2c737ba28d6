"""Schedule: the order of a function's nodes, by the algorithm that `scheduling.algorithm` names."""

from workbench.engine.passes.schedule.schedule import (
    schedule,
)

__all__ = [
    "schedule",
]
