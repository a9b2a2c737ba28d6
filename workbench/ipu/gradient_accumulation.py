"""`tensorflow.python.ipu.gradient_accumulation`: how the gradients of micro-batches become one."""

from __future__ import annotations

from enum import Enum


class GradientAccumulationReductionMethod(Enum):
    """The sum of the gradients, their mean, or their running mean (each turn weighs what there is against the new)."""

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2


__all__ = ["GradientAccumulationReductionMethod"]
