"""`tensorflow.python.framework.dtypes`: types of tensors."""

from workbench.tf.python._module import names_of

__getattr__ = names_of(__name__)
