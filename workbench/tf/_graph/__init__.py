"""What a program records: operations and tensors of a graph, variables, Keras layers, and how a graph is evaluated.

Imports `engine.frontends.describe` alone of the rooms below. Tests: tests/tf/test_graph.py.
"""

from workbench.tf._graph.graph import (
    NO_EFFECTS,
    Effects,
    Graph,
    Operation,
    Running,
    Scopes,
    Tensor,
    amend,
    as_default_session,
    building,
    current_scopes,
    default_session,
    get_default_graph,
    in_function,
    known_shape,
    next_number,
    no_value,
    outside_graphs,
    record,
    reset_default_graph,
    scoped,
)

__all__ = [
    "NO_EFFECTS",
    "Effects",
    "Graph",
    "Operation",
    "Running",
    "Scopes",
    "Tensor",
    "amend",
    "as_default_session",
    "building",
    "current_scopes",
    "default_session",
    "get_default_graph",
    "in_function",
    "known_shape",
    "next_number",
    "no_value",
    "outside_graphs",
    "record",
    "reset_default_graph",
    "scoped",
]
