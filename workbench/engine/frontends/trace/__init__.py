"""A traced program (jaxpr) becomes a graph."""
