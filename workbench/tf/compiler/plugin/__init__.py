"""`tensorflow.compiler.plugin`."""
