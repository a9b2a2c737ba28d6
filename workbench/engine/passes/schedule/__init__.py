"""Schedule: the order of a function's nodes, by the algorithm that `scheduling.algorithm` names.

`tasks` is the graph as numbers, `orders` the algorithms, `liveness` what they compare by. Imports the graph and
families' traits. Tests: tests/engine/passes/schedule.
"""

from workbench.engine.passes.schedule.schedule import (
    schedule,
)

__all__ = [
    "schedule",
]
