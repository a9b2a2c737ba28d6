"""`tensorflow.python.ops.control_flow_ops`: branches and groups."""

from workbench.tf.python._module import names_of

__getattr__ = names_of(__name__)
