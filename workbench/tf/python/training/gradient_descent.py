"""`tensorflow.python.training.gradient_descent`: gradient descent."""

from workbench.tf._gradients import GradientDescentOptimizer

__all__ = ["GradientDescentOptimizer"]
