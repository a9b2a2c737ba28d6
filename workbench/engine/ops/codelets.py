"""Which codelet computes a chain: PopLibs' own where the chain is one of its operations, else a generated one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS, TYPE_BYTES
from workbench.engine import vertices
from workbench.engine.emit import vertex_groups
from workbench.engine.ops.expressions import Applied, Expression, Form, Operand
from workbench.engine.program import VertexGroup
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine, targets
from workbench.engine.vertices.popops import elements_per_load, vector_width
from workbench.errors import InputError

SINGLE_UNARY = "popops::UnaryOp1D"
SINGLE_BINARY = "popops::BinaryOp1D"
SCALAR_BINARY = "popops::BroadcastScalar1D"
COMMUTATIVE = ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL")

A, B, C = (Operand("full", place) for place in range(3))
VECTOR, ZERO = Operand("vector"), Operand("number", value=0.0)
NON_LINEARITIES = {
    Applied("max", (A, ZERO)): "RELU",
    Applied("max", (ZERO, A)): "RELU",
    Applied("tanh", (A,)): "TANH",
    Applied("logistic", (A,)): "SIGMOID",
}
SELECT = Applied("select_n", (A, B, C))
# Updates of a by b scaled, and of a scaled too.
_PLUS = ("popops::ScaledAddSupervisor", "popops::aXPlusbYSupervisor")
SCALED_ADDS = {
    "add": _PLUS,
    "add_any": _PLUS,
    "sub": ("popops::ScaledSubtractSupervisor", "popops::aXMinusbYSupervisor"),
}


_ANY = targets["ipu2"].machine  # which types a codelet has is the same on all


@remembered(4096)
def knows(vertex: str, op: str, dtype: str) -> bool:
    """Whether PopLibs has this codelet for the operation and type."""
    try:
        vertices.cycles(_ANY, vertex, op=op, type=dtype, n=1)
    except InputError:
        return False
    return True


def spread_over_workers(vertex: str, elements: IntArray, workers: int, **fixed: Any) -> list[VertexGroup]:
    """A worker vertex on each of the workers (fewer where there are fewer elements), each with an even share."""
    share = ceil_div(np.asarray(elements, np.int64), workers)
    busy = np.minimum(workers, ceil_div(elements, np.maximum(1, share)))
    return counted(vertex, {"n": share}, busy, **fixed)


def counted(vertex: str, per_tile: dict[str, IntArray], counts: IntArray, **fixed: Any) -> list[VertexGroup]:
    """As many equal vertices on each tile as `counts` says, int64[tiles]."""
    groups = vertex_groups(vertex, {"_count": np.asarray(counts, np.int64), **per_tile}, **fixed)
    return [
        VertexGroup(
            group.vertex,
            tuple(pair for pair in group.arguments if pair[0] != "_count"),
            group.tiles,
            int(counts[group.tiles.tiles[0]]),
        )
        for group in groups
    ]


def added_in_place(elements: IntArray, dtype: str) -> list[VertexGroup]:
    """Add as many elements to others where they are; types popops has no codelet for in a generated one."""
    word = DTYPE_WORDS[dtype]
    if knows("popops::BinaryOp1DInPlace", "ADD", word):
        return vertex_groups("popops::BinaryOp1DInPlace", {"n": elements}, op="ADD", type=word)
    fixed = {"loads": (word, word), "stores": (word,), "operations": (("ADD", word),)}
    return vertex_groups("popops::MapExpression", {"n": elements}, **fixed)


def expression_groups(
    expression: Expression,
    elements: IntArray,
    needed: Sequence[IntArray] = (),
    *,
    machine: Machine,
    in_place: int | None = None,
) -> list[VertexGroup]:
    """The vertices of a chain.

    `elements` are those of the result and `needed[k]` those of broadcast operand k on each tile, int64[tiles];
    `in_place` is the number of the full operand that the result overwrites.
    """
    elements = np.asarray(elements, np.int64)
    found = None
    if len(expression.stores) == 1:
        found = _non_linearity(expression, elements, in_place) or _scaled_add(expression, elements, in_place)
        if found is None and len(expression.operations) == 1:
            found = _single(expression, elements, needed, in_place, machine)
    if found is not None:
        return found
    fixed = {"loads": expression.loads, "stores": expression.stores, "operations": expression.operations}
    return vertex_groups("popops::MapExpression", {"n": elements}, **fixed)


def _floating(expression: Expression) -> str | None:
    types = {*expression.loads, *expression.stores}
    return types.pop() if len(types) == 1 and types <= {"float", "half"} else None


def _non_linearity(expression: Expression, elements: IntArray, in_place: int | None) -> list[VertexGroup] | None:
    known = NON_LINEARITIES.get(expression.form) if isinstance(expression.form, Applied) else None
    op = known or _named_function(expression)
    dtype = _floating(expression)
    if op is None or dtype is None:
        return None
    vertex = "popnn::NonLinearity1D" + ("" if in_place is None else "InPlace")
    return vertex_groups(vertex, {"n": elements}, op=op, type=dtype)


def _named_function(expression: Expression) -> str | None:
    """The non-linearity that a chain is the whole of, by the name of the function it comes from."""
    if len(expression.full) != 1 or expression.broadcast:
        return None
    operations = {op for op, _ in expression.operations}
    if expression.region == "gelu":
        return "GELU_ERF" if "ERF" in operations else "GELU" if "TANH" in operations else None
    if expression.region in ("silu", "swish") and "SIGMOID" in operations:
        return "SWISH"
    return None


def _scaled_add(expression: Expression, elements: IntArray, in_place: int | None) -> list[VertexGroup] | None:
    """Updates of the first operand where it lies: `a ± s b` and `s a ± t b`."""
    dtype = _floating(expression)
    if dtype is None or in_place != 0 or len(expression.full) != 2:
        return None
    vertex = _scaled_update(expression.form)
    if vertex is None:
        return None
    types = {"type": dtype} if vertex.startswith("popops::aX") else {"a_type": dtype, "b_type": dtype}
    return vertex_groups(vertex, {"n": elements}, scale_type=dtype, memory_constraints=False, **types)


def _scaled_update(form: Form | None) -> str | None:
    """The codelet of `a ± s b` or `s a ± t b`."""
    if not isinstance(form, Applied) or form.op not in SCALED_ADDS:
        return None
    left, right = form.operands
    if not _is_scaled(right, B):
        return None
    one_scaled, both_scaled = SCALED_ADDS[form.op]
    return one_scaled if left == A else both_scaled if _is_scaled(left, A) else None


def _is_scaled(form: Form, operand: Operand) -> bool:
    """Whether the form is the operand times a scalar."""
    if not isinstance(form, Applied) or form.op != "mul" or operand not in form.operands:
        return False
    return any(isinstance(each, Operand) and each.is_scalar for each in form.operands)


def _single(
    expression: Expression, elements: IntArray, needed: Sequence[IntArray], in_place: int | None, machine: Machine
) -> list[VertexGroup] | None:
    op, dtype = expression.operations[0]
    suffix = "" if in_place is None else "InPlace"
    if op == "CAST":
        return vertex_groups("popops::Cast1D", {"num_elems": elements}, from_type=dtype, to_type=expression.stores[0])
    if expression.form == SELECT:
        return spread_over_workers("popops::Select" + suffix, elements, machine.workers, type=dtype)
    vertex = {(1, 0): SINGLE_UNARY, (2, 0): SINGLE_BINARY}.get((len(expression.full), len(expression.broadcast)))
    other, a_first = _beside_a(expression.form)
    in_order = a_first or op in COMMUTATIVE
    if other is not None and other.is_scalar:
        vertex = SCALAR_BINARY if in_order else None
    if vertex is not None and knows(vertex + suffix, op, dtype):
        return vertex_groups(vertex + suffix, {"n": elements}, op=op, type=dtype)
    if other == VECTOR and in_order:
        return _with_vector(expression, elements, needed[0], suffix, machine)
    return None


def _beside_a(form: Form | None) -> tuple[Operand | None, bool]:
    """The other operand of an operation of two, one of which is a, and whether a comes first."""
    if not isinstance(form, Applied) or len(form.operands) != 2 or A not in form.operands:
        return None, False
    a_first = form.operands[0] == A
    other = form.operands[1 if a_first else 0]
    return (other if isinstance(other, Operand) else None), a_first


def _with_vector(
    expression: Expression, elements: IntArray, held: IntArray, suffix: str, machine: Machine
) -> list[VertexGroup] | None:
    """A vector along the last axes (inner) or the first ones (outer) of what a tile holds."""
    op, dtype = expression.operations[0]
    along = list(expression.broadcast[0][1])
    axes = [axis for axis, size in enumerate(expression.shape) if size != 1]
    times = elements // np.maximum(1, held)
    if (times * held != elements).any():
        return None
    if along == axes[len(axes) - len(along) :] and op in ("ADD", "SUBTRACT", "MULTIPLY", "DIVIDE"):
        return _with_inner_vector(op, dtype, elements, held, suffix, machine)
    if along == axes[: len(along)] and knows(SCALAR_BINARY + suffix, op, dtype):
        return _with_outer_vector(op, dtype, elements, held, suffix, machine)
    return None


def _with_outer_vector(
    op: str, dtype: str, elements: IntArray, held: IntArray, suffix: str, machine: Machine
) -> list[VertexGroup]:
    """Tiles that hold one element of the vector see a scalar, as popops finds it (poplibs@7eac0f26 lib/popops/
    ElementWise.cpp:1639-1682); the others its outer vectors. Those give short rows to a worker each and share longer
    ones among all workers, and each tile's rows are aligned or not (there, 1125-1157).
    """
    rows = np.where(held > 1, held, 0)
    columns = np.where(held > 1, elements // np.maximum(1, held), 0)
    width, types = vector_width(dtype, machine.data_path_bytes), {"op": op, "type": dtype}
    found = vertex_groups(SCALAR_BINARY + suffix, {"n": np.where(held == 1, elements, 0)}, **types)
    short, uneven = columns < machine.workers * width, columns % width > 0
    for by_row, misaligned in product((True, False), repeat=2):
        outer = f"popops::BroadcastVectorOuterBy{'Row' if by_row else 'Column'}1D{suffix}"
        mine = (short == by_row) & (uneven == misaligned)
        sizes = {"rows": np.where(mine, rows, 0), "columns": np.where(mine, columns, 0)}
        found += vertex_groups(outer, sizes, allow_misaligned=misaligned, **types)
    return found


def _with_inner_vector(
    op: str, dtype: str, elements: IntArray, held: IntArray, suffix: str, machine: Machine
) -> list[VertexGroup] | None:
    """The codelet of inner vectors, or the vector repeated in memory for an operation of two full operands.

    popops repeats it for floats and for halves that fill no whole vectors, but never for a division (poplibs@7eac0f26
    lib/popops/ElementWise.cpp:787-816). [D] Where popops would take the codelet, a tile takes the cheaper of the two:
    the codelet gives rows to workers, so few long rows leave workers idle.
    """
    if dtype not in ("half", "float") or not knows(SINGLE_BINARY + suffix, op, dtype):
        return None
    times = elements // np.maximum(1, held)
    fast = (elements > 0) & (times > 1)
    if op != "DIVIDE":
        fast &= (dtype == "half") & (held % elements_per_load(dtype, machine.data_path_bytes) == 0)
    arguments = {"b_slice_len": np.where(fast, held, 0), "b_broadcast_factor": np.where(fast, times, 0)}
    with_codelet = vertex_groups(f"popops::BroadcastVectorInner1D{suffix}", arguments, op=op, type=dtype, b_slices_m1=0)
    kept = []
    rest = elements.copy()
    for group in with_codelet:
        n = int(elements[group.tiles.tiles[0]])
        copied = vertices.cycles(machine, "poplar::Memcpy", bytes=n * TYPE_BYTES[dtype])
        copied += vertices.cycles(machine, SINGLE_BINARY + suffix, n=n, op=op, type=dtype)
        if vertices.cycles(machine, group.vertex, **dict(group.arguments)) <= copied:
            kept.append(group)
            rest[group.tiles.tiles] = 0
    full = vertex_groups(SINGLE_BINARY + suffix, {"n": rest}, op=op, type=dtype)
    return [*kept, *vertex_groups("poplar::Memcpy", {"bytes": rest * TYPE_BYTES[dtype]}), *full]
