"""Operator families, one per file, found by folder discovery.

A family owns some ops of the graph and knows all about them: what they ask of layouts, which operand a result may
overwrite, how they become compute sets and exchanges, and how many floating-point operations they do. To add one, write
`ops/<family>.py` with a subclass of `Family` and `register(...)` it.

Imports plans, emit, vertices; no pass and nothing of `lower`. Tests: tests/engine/ops, with a sample of each family
in samples/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.base.registry import Registry, import_folder
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Mapping
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.engine.emit.context import Lowering
    from workbench.engine.options import Options


class Family:
    """One operator family. Subclasses set `name` and `ops` and write `lower`; the rest has sensible defaults.

    `before` names families that look at one of its operations too, and get those nodes that it does not claim.
    `pure_view`: its results are the memory of its operands. `pointwise`: each element of a result comes from the same
    element of operands of its shape, so that they had best lie together. `light`: it may run as soon as its operands
    are there, for it moves nothing. `shareable`: its code follows from types, layouts and attributes alone and it
    leaves nothing behind on the chip, so that runs of it can share a body. `outlined`: its plans make so much code that
    equal operators share a body each. `alone`: it is an operator of its own inside a known layer too.
    """

    name: str = ""
    ops: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    modelled: bool = True
    pure_view: bool = False
    pointwise: bool = False
    light: bool = False
    shareable: bool = False
    outlined: bool = False
    alone: bool = False
    called: str = ""  # what people call its operations, where these are named for machines

    def claims(self, node: Node) -> bool:
        """Whether this family lowers the node. Cheap; asked once per node."""
        return node.op in self.ops

    def word(self, node: Node) -> str:
        """What is done, in the field's words."""
        return self.called or node.op

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """Mappings it would like its operands to have: operand number → mapping. Asked before anything is placed."""
        return {}

    def handed_back(self, node: Node, wished: Mapping) -> dict[int, Mapping]:
        """What a wish for its first result is for its operands: operand number → mapping."""
        return {}

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """(result, operand) pairs that may share memory when nobody reads the operand afterwards."""
        return ()

    def flops(self, node: Node, lowering: Lowering) -> int:
        """Floating-point operations of one execution."""
        return 0

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The chosen plan in words, for the operator's details; empty when there is nothing to plan."""
        return ""

    def plan_cycles(self, node: Node, lowering: Lowering) -> int:
        """What the plan costs by the planner's own count, once; 0 where no planner counts cycles."""
        return 0

    def bound(self, node: Node, lowering: Lowering) -> Callable[[Options], int] | None:
        """Asks options for the temporary bytes on a tile that they allow; None where none limits them."""
        return None

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Emit the steps and bind every result to a tensor."""
        raise WorkbenchError(f"family {self.name!r} has no lowering")  # pragma: no cover

    def __repr__(self) -> str:
        return f"<family {self.name}>"


families: Registry[Family] = Registry("operator family")
_by_op: dict[str, list[Family]] = {}
_first: dict[str, Family | None] = {}  # who has every node of an operation, where one family claims them all
_loaded = False


def register(family: Family) -> Family:
    """Add a family; of several that look at one op, in the order they say, the first that claims the node has it."""
    families.add(family.name, family)
    for op in sorted(family.ops):
        _by_op[op] = ranked(family, _by_op.get(op, []), op)
        first = _by_op[op][0]
        _first[op] = first if type(first).claims is Family.claims else None
    return family


def ranked(family: Family, others: list[Family], op: str) -> list[Family]:
    """The families of an operation with one more; that neither of two comes first is an error."""
    for other in others:
        if (family.name in other.before) == (other.name in family.before):
            raise WorkbenchError(
                f"the operator families {other.name!r} and {family.name!r} both look at {op!r}",
                expected="one of them to come first",
                todo="name the other in its `before`",
            )
    place = sum(family.name in other.before for other in others)
    return [*others[:place], family, *others[place:]]


def load() -> Registry[Family]:
    """Import every family of this folder once."""
    global _loaded
    if not _loaded:
        import_folder(__name__)
        _loaded = True
    return families


def family_of(node: Node) -> Family:
    """The family that lowers this node; the generic rule when no other claims it."""
    if not _loaded:
        load()
    first = _first.get(node.op)
    if first is not None:
        return first
    for family in _by_op.get(node.op, ()):
        if family.claims(node):
            return family
    return families.get("generic")


def same_type(left: Value, right: Value) -> bool:
    """Equal shape and element size, so that one can stand where the other was."""
    return left.shape == right.shape and left.itemsize_bytes == right.itemsize_bytes
