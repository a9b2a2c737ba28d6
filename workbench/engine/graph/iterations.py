"""Loops that stop when numbers have converged and count a fixed number of turns; the verdict says so."""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.graph.graph import Graph, Node, walk

ASSUMED = "assumed"  # the attribute of such a loop: what counts, as text


def with_iterations_said(graph: Graph) -> Graph:
    """The graph with what is assumed of its loops of a fixed length, which are told apart by layer or line."""
    said = dict.fromkeys(_sentence(node) for _, node in walk(graph) if node.attr(ASSUMED))
    return replace(graph, assumptions=(*graph.assumptions, *said)) if said else graph


def _sentence(node: Node) -> str:
    name = repr(node.origin.layer or node.origin.source or node.calls[0])
    return f"iterations: {node.attr(ASSUMED)} of {name} counts; how many converge depends on numbers"
