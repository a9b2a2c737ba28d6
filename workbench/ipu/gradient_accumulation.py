"""`tensorflow.python.ipu.gradient_accumulation`: how the gradients of micro-batches become one."""

from __future__ import annotations

from enum import Enum

from workbench.base.text import short
from workbench.errors import InputError


class GradientAccumulationReductionMethod(Enum):
    """The sum of the gradients, their mean, or their running mean.

    MEAN adds up gradients divided by their number; RUNNING_MEAN after n of them keeps sum * n / (n + 1) +
    gradient / (n + 1), which is the mean of what has come.
    """

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2

    @classmethod
    def parse(cls, reduction_method: GradientAccumulationReductionMethod | str) -> GradientAccumulationReductionMethod:
        """A member from itself or its name in any case; a `ValueError` for anything else."""
        if isinstance(reduction_method, cls):
            return reduction_method
        name = reduction_method.upper() if isinstance(reduction_method, str) else ""
        if name in cls.__members__:
            return cls[name]
        raise InputError(
            f"reduction_method is {short(reduction_method)}",
            expected=f"one of {', '.join(cls.__members__)}",
            todo='give a member of GradientAccumulationReductionMethod, or its name, such as "mean"',
        )


__all__ = ["GradientAccumulationReductionMethod"]
