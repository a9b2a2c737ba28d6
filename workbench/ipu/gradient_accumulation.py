"""`tensorflow.python.ipu.gradient_accumulation`: how the gradients of micro-batches become one."""

from __future__ import annotations

from enum import Enum


class GradientAccumulationReductionMethod(Enum):
    """The sum of the gradients, their mean, or their running mean.

    MEAN adds up gradients divided by their number; RUNNING_MEAN after n of them keeps sum * n / (n + 1) +
    gradient / (n + 1), which is the mean of what has come.
    """

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2


__all__ = ["GradientAccumulationReductionMethod"]
