"""`tensorflow.python.training.gradient_descent`: gradient descent."""

from workbench.tf._ops.gradients import GradientDescentOptimizer

__all__ = ["GradientDescentOptimizer"]
