"""Primitives the IPU has no operator for, as programs of smaller ones."""
