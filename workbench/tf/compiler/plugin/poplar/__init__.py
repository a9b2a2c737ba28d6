"""`tensorflow.compiler.plugin.poplar`."""
