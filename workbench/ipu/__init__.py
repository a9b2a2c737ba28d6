"""The API of `tensorflow.python.ipu`, module for module."""
