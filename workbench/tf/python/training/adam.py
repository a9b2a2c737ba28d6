"""`tensorflow.python.training.adam`."""

from workbench.tf._ops.gradients import AdamOptimizer

__all__ = ["AdamOptimizer"]
