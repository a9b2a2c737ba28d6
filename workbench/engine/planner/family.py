"""What the families of planned operators share: plan a node once, say what layouts it wishes, lower it."""

from __future__ import annotations

from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import Mapping
from workbench.engine.plan import ConvPlan
from workbench.engine.planner.emission import lower_plan, node_places, operand_order
from workbench.engine.planner.problem import Planned, problem_of
from workbench.engine.planner.search import plan, settings_of


def planned_of(node: Node, lowering: Lowering) -> tuple[Planned, ConvPlan]:
    """The problem of a node and its plan; equal problems are planned once."""
    group = "matmuls" if node.op == "dot_general" else "convolutions"
    partials_type = lowering.options.get(f"{group}.poplar_options.partialsType")
    planned = problem_of(node, partials_type)
    found = plan(planned.problem, lowering.target, settings_of(planned.problem, lowering.options))
    lowering.plans[id(node)] = found
    return planned, found


def wished_layouts(node: Node, lowering: Lowering) -> dict[int, Mapping]:
    """Owners of both operands: every element on one of the tiles that need it."""
    if not all(value.elements for value in (*node.operands, *node.results)):
        return {}
    planned, chosen = planned_of(node, lowering)
    places = node_places(node, planned, chosen, lowering.tiles)
    streams, held = operand_order(chosen)
    return {streams: places.input_owner, held: places.weight_owner}


def lower_node(node: Node, lowering: Lowering) -> None:
    """Lower a planned operator; one that multiplies nothing gives zeros."""
    planned, chosen = planned_of(node, lowering)
    lower_plan(node, lowering, planned, chosen)
