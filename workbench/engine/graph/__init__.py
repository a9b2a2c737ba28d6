"""The model as data: a module of functions over typed values, with no trace of JAX or Keras left in it."""

from workbench.engine.graph.graph import (
    RESIDENT_ROLES,
    Function,
    Graph,
    GraphBuilder,
    Input,
    Node,
    Output,
    Role,
    Value,
    attrs,
    verify_graph,
    walk,
)

__all__ = [
    "RESIDENT_ROLES",
    "Function",
    "Graph",
    "GraphBuilder",
    "Input",
    "Node",
    "Output",
    "Role",
    "Value",
    "attrs",
    "verify_graph",
    "walk",
]
