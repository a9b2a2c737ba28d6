"""What the families of planned operators share: plan a node once, say what layouts it wishes, lower it.

Forward pass, input gradient and weight gradient of a layer are joined by their layouts. Each is planned for itself, and
every plan names owners for its operands; the earliest reader of a value decides, so the forward plan places activations
and weights. The gradients' plans then find them there, and what that costs them is part of the program: the exchange
from the forward plan's owners, and the rearrangements of transposed blocks, which their own cost includes. Their
results go where they are wished: the sum of a weight gradient's partials is reduced straight into the owners of the
weights, so that the update moves nothing, and an input gradient's into the layout that its first reader asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Graph, Node
from workbench.engine.graph.primitives import Kind, kind
from workbench.engine.mapping import Mapping
from workbench.engine.options import Options
from workbench.engine.planner.beside.second import LEAST, SECOND, planned
from workbench.engine.planner.beside.wire import Question
from workbench.engine.planner.bytes import bounds
from workbench.engine.planner.emission import lower_plan, node_places, operand_order
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import ConvProblem, Planned, problem_of
from workbench.engine.planner.search import PROPORTION, settings_of
from workbench.engine.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOf:
    """Asks options for the plan of a problem; `proportion` in place of theirs."""

    problem: ConvProblem
    target: Target
    proportion: float | None = None

    def __call__(self, options: Options) -> ConvPlan:
        """The plan."""
        return planned(*self.question(options))

    def question(self, options: Options) -> Question:
        """What is searched."""
        return self.problem, self.target, settings_of(self.problem, options, self.proportion)

    def allowed_bytes(self, options: Options) -> int:
        """Temporary bytes on a tile that are asked for; 0 asks for the least there are."""
        return next(iter(bounds(self.target, settings_of(self.problem, options, self.proportion).proportion)), 0)


def planned_of(node: Node, lowering: Lowering) -> tuple[Planned, ConvPlan]:
    """The problem of a node and its plan; equal problems are planned once."""
    posed, asked = _posed(node, lowering.target, lowering.options)
    found = lowering.plans[node] = lowering.options.ask(asked)
    return posed, found


def _posed(node: Node, target: Target, options: Options) -> tuple[Planned, PlanOf]:
    """The problem of a node, and what asks for its plan."""
    group = "matmuls" if node.op == "dot_general" else "convolutions"
    partials_type = node.attr("partials_type") or options.get(f"{group}.poplar_options.partialsType")
    posed = problem_of(node, partials_type, quarters=target.conv_units_quarter > 0)
    if group == "matmuls" and options.get("matmuls.clear_pass_type"):
        posed = replace(posed, problem=replace(posed.problem, direction="forward"))
    return posed, PlanOf(problem=posed.problem, target=target, proportion=node.attr(PROPORTION))


def search_ahead(graph: Graph, target: Target, options: Options) -> None:
    """Have the plans of a graph's products searched beside, if somebody is there to, in the order in which wishes for
    layouts are found."""
    if not SECOND.is_alive:
        return
    products = (node for each in graph.functions.values() for node in each.nodes if kind(node) is Kind.PRODUCT)
    asked = (_posed(node, target, options)[1].question(options) for node in products if has_products(node))
    SECOND.ask(list(dict.fromkeys(asked)))


def search_no_more() -> None:
    """Have nothing searched beside: nobody is going to need it."""
    SECOND.ask(())


class Ahead:
    """Has plans of products searched beside as they are told one by one, if somebody is there to."""

    def __init__(self, target: Target, options: Options) -> None:
        self._target, self._options = target, options
        self._wanted: dict[Question, None] = {}
        self._asked = 0

    def hear(self, node: Node) -> None:
        """Of one product; some are waited for, since few are not worth asking."""
        if not SECOND.is_alive or not has_products(node):
            return
        self._wanted[_posed(node, self._target, self._options)[1].question(self._options)] = None
        if len(self._wanted) >= self._asked + LEAST:
            self._asked = len(self._wanted)
            SECOND.ask(list(self._wanted))


def has_products(node: Node) -> bool:
    """Whether anything is multiplied at all."""
    return all(value.elements for value in (*node.operands, *node.results))


def macs_of(node: Node, lowering: Lowering) -> int:
    """Multiply-accumulates of a node."""
    return planned_of(node, lowering)[0].problem.macs() if has_products(node) else 0


def planned_text(node: Node, lowering: Lowering) -> str:
    """The plan in words."""
    return str(planned_of(node, lowering)[1]) if has_products(node) else "nothing to multiply"


def planned_cycles(node: Node, lowering: Lowering) -> int:
    """What the plan costs the planner; none where there is nothing to multiply."""
    return planned_of(node, lowering)[1].total_cycles if has_products(node) else 0


def allowed_bytes(node: Node, lowering: Lowering) -> Callable[[Options], int] | None:
    """Asks options for the temporary bytes on a tile that availableMemoryProportion allows."""
    if not has_products(node):
        return None
    problem = planned_of(node, lowering)[0].problem
    return PlanOf(problem=problem, target=lowering.target, proportion=node.attr(PROPORTION)).allowed_bytes


def wished_layouts(node: Node, lowering: Lowering) -> dict[int, Mapping]:
    """Owners of both operands: every element on one of the tiles that need it."""
    if not has_products(node):
        return {}
    posed, chosen = planned_of(node, lowering)
    if chosen.problem.is_foreign(chosen.swapped):
        return {}
    places = node_places(node, posed, chosen, lowering.tiles)
    streams, held = operand_order(chosen)
    return {streams: places.input_owner, held: places.weight_owner}


def lower_node(node: Node, lowering: Lowering) -> None:
    """Lower a planned operator; one without elements to multiply fills its result with zeros."""
    if not has_products(node):
        _zeros(node, lowering)
        return
    posed, chosen = planned_of(node, lowering)
    lower_plan(node, lowering, posed, chosen)


def _zeros(node: Node, lowering: Lowering) -> None:
    value = node.results[0]
    result = lowering.result(node, 0, lowering.wish(value) or lowering.default_mapping(value))
    workers = lowering.target.workers_per_tile
    share = ceil_div(result.elements_per_tile(lowering.tiles), workers)
    groups = vertex_groups("popops::Fill", {"n": share}, type=DTYPE_WORDS[value.dtype])
    filled = [replace(group, count=workers) for group in groups]
    lowering.emit.compute(lowering.label(node), filled, (), result.variables)
