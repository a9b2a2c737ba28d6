"""`tensorflow.compiler.plugin.poplar.ops`. Tests: tests/tf/test_programs.py."""

from workbench.tf.compiler.plugin.poplar.ops import gen_ipu_ops

__all__ = ["gen_ipu_ops"]
