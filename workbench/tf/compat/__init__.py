"""`tensorflow.compat`."""

from workbench.tf.compat import v1

__all__ = ["v1"]
