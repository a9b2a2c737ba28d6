"""`tensorflow.python.ops.variable_scope`: variables by name."""

from workbench.tf.python._module import names_of

__getattr__ = names_of(__name__)
