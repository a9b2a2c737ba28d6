"""`tensorflow.python.training.momentum`."""

from workbench.tf._gradients import MomentumOptimizer

__all__ = ["MomentumOptimizer"]
