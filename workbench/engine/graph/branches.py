"""Branches that a number chooses between: the dearest counts, and the verdict says so."""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph.graph import Graph, Node, walk

BRANCH = "cond"


def with_branches_said(graph: Graph) -> Graph:
    """The graph with what is assumed of its branches, which are told apart by layer or line."""
    said = dict.fromkeys(_sentence(node) for _, node in walk(graph) if node.op == BRANCH)
    return replace(graph, assumptions=(*graph.assumptions, *said)) if said else graph


def _sentence(node: Node) -> str:
    name = repr(node.origin.layer or node.origin.source or node.calls[0])
    if node.origin.direction == "update":
        name = f"the update of {name}"
    return f"branches: which of the {len(node.calls)} of {name} runs depends on numbers, and the dearest counts"
