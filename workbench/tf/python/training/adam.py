"""`tensorflow.python.training.adam`."""

from workbench.tf._gradients import AdamOptimizer

__all__ = ["AdamOptimizer"]
