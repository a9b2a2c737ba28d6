"""`tensorflow.python.training.training`: optimizers and the step that counts their updates."""

from workbench.tf._gradients import (
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)
from workbench.tf._names import get_global_step, get_or_create_global_step

__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "get_global_step",
    "get_or_create_global_step",
]
