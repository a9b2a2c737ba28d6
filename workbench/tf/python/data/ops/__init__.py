"""`tensorflow.python.data.ops`."""
