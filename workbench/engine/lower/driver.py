"""The driver: lowers the nodes of a body in order, each by its family, and shares what is outlined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from workbench.engine import ops
from workbench.engine.emit.context import Lowering, Operator
from workbench.engine.graph import Function, Node
from workbench.engine.graph.stages import is_stage_call
from workbench.engine.lower.outline import Outliner


@dataclass(slots=True)
class Driver(Lowering):
    """A lowering that runs: `check` is called before each operator and may raise to cancel."""

    check: Callable[[], None] = lambda: None
    outliner: Outliner = field(default_factory=Outliner)

    def word(self, node: Node) -> str:
        """What is done, in the field's words."""
        return ops.family_of(node).word(node)

    def lower_function(self, function: Function, *, operators: bool = True) -> None:
        """Lower every node of a body in order; with `operators` each becomes a row of `.operators`."""
        for node in function.nodes:
            if operators:
                self.lower_operator(node)
            else:
                self.lower_node(node)

    def lower_operator(self, node: Node) -> None:
        """Lower a node as an operator of its own."""
        self.check()
        with self.on_shard(node):
            self._lower_operator(node)

    def _lower_operator(self, node: Node) -> None:
        family = ops.family_of(node)
        if family.pure_view or is_stage_call(node):
            if not self.outliner.covers(node):
                self.lower_node(node)
            return
        label = self.label(node)
        number = self.names.get(label, 0)
        self.names[label] = number + 1
        name = f"{label}:{node.origin.direction}" + (f"#{number}" if number else "")
        with self.emit.inside(operator=name):
            body = self.outliner.lower(node, self)
            if body is None:
                self.lower_node(node)
        repeated, self.emit.repeated = self.emit.repeated, {}
        self.operators.append(
            Operator(
                id=name,
                name=label,
                layer=node.origin.layer,
                direction=node.origin.direction,
                op=family.word(node),
                flops=family.flops(node, self),
                plan=family.plan_text(node, self),
                plan_cycles=family.plan_cycles(node, self),
                bound=family.bound(node, self),
                modelled=family.modelled,
                body=body or "",
                repeated=repeated,
            )
        )

    def lower_node(self, node: Node) -> None:
        """Lower a node in the context of its origin."""
        family = ops.family_of(node)
        if not family.modelled:
            self.unmodelled.append((node.op, node.origin.layer))
        with self.at(node):
            family.lower(node, self)
