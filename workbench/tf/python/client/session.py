"""`tensorflow.python.client.session`."""

from workbench.tf.python._module import names_of

__getattr__ = names_of(__name__)
