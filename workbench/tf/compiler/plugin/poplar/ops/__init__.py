"""`tensorflow.compiler.plugin.poplar.ops`."""

from workbench.tf.compiler.plugin.poplar.ops import gen_ipu_ops

__all__ = ["gen_ipu_ops"]
