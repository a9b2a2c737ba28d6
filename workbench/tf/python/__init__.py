"""`tensorflow.python`: the modules whose names programs for the IPU import from."""

from workbench import ipu
from workbench.tf.python import framework, ops, training

__all__ = ["framework", "ipu", "ops", "training"]
