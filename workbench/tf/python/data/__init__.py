"""`tensorflow.python.data`."""
