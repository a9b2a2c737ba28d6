"""`tensorflow.python.training.training`: optimizers and the step that counts their updates."""

from workbench.tf._names import get_global_step, get_or_create_global_step
from workbench.tf._ops.gradients import (
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)

__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "get_global_step",
    "get_or_create_global_step",
]
