"""`tensorflow.python.ops`."""
