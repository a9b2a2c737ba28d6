"""`tensorflow.python.framework.ops`: the graph and its scopes."""

from workbench.tf.python._module import names_of

__getattr__ = names_of(__name__)
