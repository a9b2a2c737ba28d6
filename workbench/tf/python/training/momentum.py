"""`tensorflow.python.training.momentum`."""

from workbench.tf._ops.gradients import MomentumOptimizer

__all__ = ["MomentumOptimizer"]
