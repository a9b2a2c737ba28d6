"""What an elementwise chain computes: how its operands reach a tile, its operations, and its form, a small tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.cost import Plain
from workbench.engine.graph import Function, Node, Value
from workbench.engine.ops.pointwise import expression_ops, is_free, is_unit_reshape

Shape: TypeAlias = tuple[int, ...]

LARGEST_FORM = 6  # operations; PopLibs' own codelets do no more


Letters: TypeAlias = Literal["full", "scalar", "vector", "number"]
LETTERS = {"full": "abcdefgh", "scalar": "stuvwxyz", "vector": "ijklmnop"}


@dataclass(frozen=True, slots=True)
class Operand:
    """What a form reads: the operand of this place among those of its kind, or a number."""

    kind: Letters
    place: int = 0
    value: Plain = None

    @property
    def is_scalar(self) -> bool:
        """Whether it is one number for all elements; infinities and truth values count as part of a chain."""
        if self.kind != "number":
            return self.kind == "scalar"
        return isinstance(self.value, int | float) and not isinstance(self.value, bool) and isfinite(self.value)

    def __str__(self) -> str:
        if self.kind == "number":
            return str(self.value)
        letters = LETTERS[self.kind]
        return letters[self.place] if self.place < len(letters) else "?"


@dataclass(frozen=True, slots=True)
class Applied:
    """What a form computes: a primitive of other forms."""

    op: str
    operands: tuple[Form, ...]

    def __str__(self) -> str:
        return f"{self.op}({','.join(map(str, self.operands))})"


Form: TypeAlias = Operand | Applied


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """What one chain computes over `shape`: full operands, operands that are repeated, and operations.

    Full operands and results have the elements of the chain, up to axes of size 1. A repeated operand comes with the
    axes of `shape` along which its own axes longer than 1 lie.

    `form` is the tree of a chain of few operations and one result, none of a longer chain. It prints in letters, in the
    order of `full`: full operands a, b, …, scalars s, t, …, vectors i, j, …, constants as numbers: `sub(a,mul(b,s))`.
    """

    shape: Shape
    full: tuple[Value, ...]
    broadcast: tuple[tuple[Value, Shape], ...]
    operations: tuple[tuple[str, str], ...]  # (PopLibs op, dtype word)
    loads: tuple[str, ...]
    stores: tuple[str, ...]
    form: Form | None = None
    region: str = ""


def expression_of(node: Node, body: Function | None) -> Expression:
    """Read the expression of a fused node (its body) or of a single pointwise node."""
    members = [node] if body is None else list(body.nodes)
    reader = _Reader(members, node.results[0].shape)
    operations = operations_of(members)
    short = len(operations) <= LARGEST_FORM and len(node.results) == 1
    form = reader.form(node.results[0], reader.axes) if short else None
    for member in () if short else members:
        for value in () if is_free(member) else member.operands:
            reader.operand(value, reader.axes_of(value, member))
    return Expression(
        shape=node.results[0].shape,
        full=tuple(reader.full.values()),
        broadcast=tuple(reader.broadcast.values()),
        operations=operations,
        loads=tuple(DTYPE_WORDS[value.dtype] for value in reader.full.values()),
        stores=tuple(DTYPE_WORDS[value.dtype] for value in node.results),
        form=form,
        region=_region(members),
    )


def operations_of(members: Iterable[Node]) -> tuple[tuple[str, str], ...]:
    """What the members of a chain do for each element: PopLibs op and dtype word."""
    return tuple((op, DTYPE_WORDS[dtype]) for member in members for op, dtype in _operations(member))


def _operations(member: Node) -> Sequence[tuple[str, str]]:
    if member.op == "iota":
        return [("ADD", member.results[0].dtype)]
    return [] if is_free(member) else expression_ops(member)


def _region(members: Sequence[Node]) -> str:
    """The named function that all operations of a chain are part of, if they are of one."""
    names = {member.origin.region for member in members if not is_free(member)}
    return names.pop() if len(names) == 1 else ""


class _Reader:
    """Finds where the values that a chain reads come from, through the broadcasts and unit axes inside it."""

    def __init__(self, members: Sequence[Node], shape: Shape) -> None:
        self.shape = shape
        self.axes = tuple(axis for axis, size in enumerate(shape) if size != 1)
        self.made = {value: member for member in members for value in member.results}
        self.full: dict[Value, Value] = {}
        self.broadcast: dict[tuple[Value, Shape], tuple[Value, Shape]] = {}
        self._operands: dict[object, Operand] = {}

    def axes_of(self, value: Value, member: Node) -> Shape:
        """The axes of the chain along which the axes (longer than 1) of a member's operand lie."""
        if value.shape == self.shape or is_unit_reshape(member):
            return self.axes
        if len(value.shape) != len(member.results[0].shape):
            return ()
        along = iter(self.axes)
        found = {axis: next(along) for axis, size in enumerate(member.results[0].shape) if size != 1}
        return tuple(found[axis] for axis, size in enumerate(value.shape) if size != 1)

    def origin(self, value: Value, axes: Shape) -> tuple[Value, Shape]:
        """What a broadcast inside the chain repeats, and along which axes of the chain."""
        made_by = self.made.get(value)
        while made_by is not None and made_by.op == "broadcast_in_dim":
            long = [axis for axis, size in enumerate(value.shape) if size != 1]
            along = dict(zip(long, axes, strict=True))
            operand = made_by.operands[0]
            dims = made_by.attr("broadcast_dimensions")
            axes = tuple(along[axis] for axis, size in zip(dims, operand.shape, strict=True) if size != 1)
            value, made_by = operand, self.made.get(operand)
        return value, axes

    def operand(self, value: Value, axes: Shape) -> Operand | None:
        """An operand (met for the first time: the next of its kind) or a number; None if the chain computes it."""
        value, axes = self.origin(value, axes)
        made_by = self.made.get(value)
        if made_by is not None:
            return Operand("number", value=made_by.attr("value")) if made_by.op == "constant" else None
        if axes == self.axes:
            self.full[value] = value
            return self._next(value, "full")
        self.broadcast[value, axes] = (value, axes)
        return self._next((value, axes), "scalar" if value.elements == 1 else "vector")

    def _next(self, key: object, kind: Letters) -> Operand:
        known = self._operands.get(key)
        if known is None:
            place = sum(other.kind == kind for other in self._operands.values())
            known = self._operands[key] = Operand(kind, place)
        return known

    def form(self, value: Value, axes: Shape) -> Form:
        """The tree of what makes the value."""
        known = self.operand(value, axes)
        if known is not None:
            return known
        made_by = self.made[value]
        if is_unit_reshape(made_by):
            return self.form(made_by.operands[0], self.axes)
        inside = tuple(self.form(operand, self.axes_of(operand, made_by)) for operand in made_by.operands)
        return Applied(made_by.op, inside)
