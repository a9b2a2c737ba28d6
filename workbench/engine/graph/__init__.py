"""The model as data: a module of functions over typed values, with no trace of JAX or Keras left in it.

`graph` has the types, `origin` where a node comes from, `primitives` what is known of every operation, `stages` the
calls of pipeline stages, `flow` what goes round a loop, `rewriting` how a pass writes a function anew, `content` what
makes two graphs equal, `trip_counts`, `branches` and `iterations` what is assumed where numbers decide how long
something takes. Imports `base` and targets. Tests: tests/engine/graph.
"""

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
