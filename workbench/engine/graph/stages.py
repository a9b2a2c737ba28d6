"""The stages of a graph: the entry's calls of functions that were traced apart, and what each of them does.

A pipeline's entry holds one `call` node for each pass of each stage. A step that accumulates gradients without stages
is one stage of two calls. Everything that asks which call is which asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.engine.graph.graph import Function, Graph, Node

Turn: TypeAlias = Literal["forward", "recompute", "backward", "update", "before", "after"]
"""What a call does: a pass over a micro-batch, the weight update, or work around all micro-batches."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StageCall:
    """A call of the entry: of which stage, what it does there, and the function it runs."""

    node: Node
    number: int
    direction: Turn
    function: Function

    @property
    def repeated(self) -> bool:
        """Whether it runs for every micro-batch."""
        return is_repeated(self.node)


def is_stage_call(node: Node) -> bool:
    """Whether a node of the entry calls the function of a stage."""
    return node.op == "call"


def direction_of(node: Node) -> Turn:
    """What the call of a stage does."""
    said: Turn = node.attr("direction") or node.origin.direction
    return said


def is_repeated(node: Node) -> bool:
    """Whether the call of a stage runs for every micro-batch."""
    return direction_of(node) in ("forward", "recompute", "backward")


def stage_calls(graph: Graph) -> tuple[StageCall, ...]:
    """The calls of the entry in order; none in a graph without stages."""
    return tuple(
        StageCall(
            node=node,
            number=int(node.attr("stage", 0)),
            direction=direction_of(node),
            function=graph.functions[node.calls[0]],
        )
        for node in graph.body.nodes
        if is_stage_call(node)
    )


def stage_pairs(
    graph: Graph, first: Sequence[Turn] = ("forward",), second: Turn = "backward"
) -> list[tuple[StageCall, StageCall]]:
    """Of each stage that has both, the first call it has of these directions and its `second`, in their order."""
    calls = stage_calls(graph)
    known = {(call.number, call.direction): call for call in calls}
    found = []
    for call in calls:
        earlier = [known[call.number, each] for each in first if (call.number, each) in known]
        if call.direction == second and earlier:
            found.append((earlier[0], call))
    return found


def stage_name(number: int) -> str:
    """What the names of values that are a stage's own begin with."""
    return f"stage{number}"


def body_name(number: int, direction: str) -> str:
    """The name of what a stage runs: the body of a pass, or what moves its values."""
    return f"{stage_name(number)}_{direction}"
