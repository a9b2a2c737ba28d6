"""`tensorflow.python.ipu.ops`: operations of the IPU's own, module for module.

Tests: tests/ipu/pipelining.
"""
