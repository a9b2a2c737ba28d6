"""`tensorflow.python.ipu.ops`: operations of the IPU's own, module for module."""
