"""popops broadcasts of a vector: inner (the vector runs along rows) and outer (one element per row).

Inner vertices: `b_slice_len` elements of the vector, each used on `b_broadcast_factor` rows, `b_slices_m1 + 1`
slices; `op` is ADD, SUBTRACT, MULTIPLY or DIVIDE of floats or halves. Outer vertices: `rows` x `columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import sized
from workbench.errors import InputError

_DIVIDE_CYCLES = 3  # an f32div takes one or three; PopLibs counts three


def _vector_steps(length: int, grain: int, smallest: int) -> int:
    """Loops of `grain` elements over a length, the tail in powers of two no less than `smallest`."""
    tail = length % grain
    bits = range(p.ceil_log2(smallest), p.ceil_log2(grain))
    return length // grain + sum(tail >> bit & 1 for bit in bits)


def _float_core(length: int, blocks: int) -> int:
    return 2 + (5 + length * (3 + 2 * blocks + 5) if blocks else 0)


def _scalar_half_add(length: int, blocks: int) -> int:
    return 6 + length * (5 + 9 * blocks)


def _add_half_eights(length: int, blocks: int) -> int:
    steps = _vector_steps(length, 8, 8)
    if blocks == 1:
        return 2 + 3 + 7 * steps + 1
    return 2 + 4 + steps * (8 + 2 * (blocks - 1) + 7) + 1


def _add_half_fours(length: int, blocks: int) -> int:
    steps = _vector_steps(length, 4, 4)
    return 5 + steps * (7 + 2 * (blocks // 2 - 1) + 1 + blocks % 2 + 5) + 1


def _add_half(length: int, blocks: int) -> int:
    """Checks cost one or two cycles each and pick the widest path the length allows."""
    if blocks == 0:
        return 1
    if length > 2048:
        return 3 + _scalar_half_add(length, blocks)
    if length % 8 == 0:
        return 5 + _add_half_eights(length, blocks)
    if blocks < 2:
        return 7 + _scalar_half_add(length, blocks)
    if length % 4 == 0:
        return 9 + _add_half_fours(length, blocks)
    return 9 + _scalar_half_add(length, blocks)


def _multiply_half(length: int, blocks: int, in_place: bool) -> int:
    if length % 4:
        return 3 + 4 + length * (5 + 9 * blocks) + 1
    steps = _vector_steps(length, 4, 4)
    unpiped = 3 + steps * (4 + 2 * blocks + 3) + 1
    if in_place:
        return 5 + unpiped
    if length > 2044:
        return 7 + unpiped
    if blocks < 2:
        return 9 + unpiped
    return 9 + 3 + steps * (6 + blocks + 3) + 1


def _divide_float(length: int, blocks: int) -> int:
    if blocks == 0:
        return 2
    if length % 2:
        return 8 + length * (3 + (blocks - 1) * (_DIVIDE_CYCLES + 1) + _DIVIDE_CYCLES + 3) + 1
    pair = 2 + _DIVIDE_CYCLES + (blocks - 1) * 2 * _DIVIDE_CYCLES + _DIVIDE_CYCLES + 3
    return 9 + length // 2 * pair + 1


def _divide_half_one(blocks: int) -> int:
    last = 2 + _DIVIDE_CYCLES + 3
    if blocks == 1:
        return 7 + 7 + last
    pair = 2 + 2 * _DIVIDE_CYCLES
    tail = last if blocks % 2 else 0
    return 7 + 10 + 2 * _DIVIDE_CYCLES + (blocks // 2 - 1) * pair + 3 + tail


def _divide_half_odd(length: int, blocks: int) -> int:
    double = 2 * _DIVIDE_CYCLES
    repeats = length // 2 - 1
    even_block = 3 + double + repeats * (3 + double) + 3
    odd_block = 5 + double + 1 + repeats * (4 + double) + 3 + double + 3
    tail = even_block + 2 + _DIVIDE_CYCLES + 3 if blocks % 2 else 0
    return 8 + blocks // 2 * (even_block + odd_block) + tail


def _divide_half(length: int, blocks: int) -> int:
    if blocks == 0:
        return 2
    if length == 1:
        return 2 + _divide_half_one(blocks)
    if length % 2:
        return 2 + _divide_half_odd(length, blocks)
    double = 2 * _DIVIDE_CYCLES
    return 2 + 8 + length // 2 * (3 + double + (blocks - 1) * (2 + double) + 4) + 4


def _core(op: str, dtype: str, in_place: bool) -> Callable[[int, int], int]:
    if dtype not in ("float", "half"):
        raise InputError(f"a vector broadcast has no codelet for {dtype!r}", expected="one of: float, half")
    if op in ("ADD", "SUBTRACT"):
        return _float_core if dtype == "float" else _add_half
    if op == "DIVIDE":
        return _divide_float if dtype == "float" else _divide_half
    if op != "MULTIPLY":
        raise InputError(
            f"a vector broadcast has no codelet for {op!r}", expected="one of: ADD, SUBTRACT, MULTIPLY, DIVIDE"
        )
    return _float_core if dtype == "float" else lambda length, blocks: _multiply_half(length, blocks, in_place)


# op: (cycles added to the supervisor, to each worker), out of place and in place
_ENTRY_CYCLES = {
    ("ADD", False): (6, 3),
    ("ADD", True): (0, 2),
    ("SUBTRACT", False): (6, 3),
    ("SUBTRACT", True): (6, 3),
    ("MULTIPLY", False): (0, 2),
    ("MULTIPLY", True): (6, 3),
    ("DIVIDE", False): (5, 0),
    ("DIVIDE", True): (3, 0),
}


def _worker_entry_cycles(op: str, dtype: str, length: int) -> int:
    half = dtype == "half"
    if op == "DIVIDE":
        return 24 if half else 19
    odd = 7 if half and length % 2 else 0
    once = (19 if half else 17) + odd
    # PopLibs charges the multiply's preamble twice.
    return once + ((24 if half else 17) if op == "MULTIPLY" else 0)


def _inner_1d(op: str, dtype: str, length: int, factor: int, slices_m1: int, in_place: bool, *, workers: int) -> int:
    core = _core(op, dtype, in_place)
    supervisor, worker = _ENTRY_CYCLES[op, in_place]
    per_slice = (17 if slices_m1 else 0) + core(length, ceil_div(factor, workers))
    worker += _worker_entry_cycles(op, dtype, length) + (slices_m1 + 1) * per_slice
    return 13 + supervisor + workers * worker


def _inner_flops(*, op: str, type: str, b_slice_len: int, b_broadcast_factor: int, b_slices_m1: int) -> int:
    return p.op_flops(op, type, b_slice_len * (b_slices_m1 + 1) * b_broadcast_factor)


# Instruction counts of vectorInner{Add,Mul,Div}_{float,half}.S, 4 B each.
_INNER_CODE = {
    ("ADD", "float"): 420,
    ("ADD", "half"): 884,
    ("MULTIPLY", "float"): 312,
    ("MULTIPLY", "half"): 784,
    ("DIVIDE", "float"): 360,
    ("DIVIDE", "half"): 620,
}


def _inner_code_bytes(*, op: str, type: str, **_: object) -> int:
    return _INNER_CODE["ADD" if op == "SUBTRACT" else op, type]


_INNER_TEXT = (
    "core: float 7 + length * (8 + 2 * blocks); half in vectors of 8 or 4 when the length allows; "
    "division 3 cycles an element"
)


def _inner_1d_read(*, b_slice_len: int, b_broadcast_factor: int, b_slices_m1: int, **_: object) -> tuple[int, ...]:
    """Elements of the data, and of the vector."""
    vector = b_slice_len * (b_slices_m1 + 1)
    return vector * b_broadcast_factor, vector


@codelet(
    "popops::BroadcastVectorInner1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:1189",
    formula=f"13 + entry + workers * (entry + slices * core); blocks = ceil(broadcast factor / workers); {_INNER_TEXT}",
    state_bytes=lambda **_: 3 * p.POINTER + 6,
    code_bytes=_inner_code_bytes,
    flops=_inner_flops,
    operands=sized(_inner_1d_read, lambda **sizes: _inner_1d_read(**sizes)[:1]),
)
def broadcast_vector_inner_1d(
    *, op: str, type: str, b_slice_len: int, b_broadcast_factor: int, b_slices_m1: int, workers: int
) -> int:
    """Tile cycles of `out[r, c] = data[r, c] op B[c]`."""
    return _inner_1d(op, type, b_slice_len, b_broadcast_factor, b_slices_m1, in_place=False, workers=workers)


@codelet(
    "popops::BroadcastVectorInner1DInPlace",
    kind="multi",
    source=f"{p.ESTIMATORS}:1243",
    formula=f"13 + entry + workers * (entry + slices * core); blocks = ceil(broadcast factor / workers); {_INNER_TEXT}",
    state_bytes=lambda **_: 2 * p.POINTER + 6,
    code_bytes=_inner_code_bytes,
    flops=_inner_flops,
    operands=sized(_inner_1d_read, lambda **sizes: _inner_1d_read(**sizes)[:1]),
)
def broadcast_vector_inner_1d_in_place(
    *, op: str, type: str, b_slice_len: int, b_broadcast_factor: int, b_slices_m1: int, workers: int
) -> int:
    """Tile cycles of `data[r, c] = data[r, c] op B[c]`."""
    return _inner_1d(op, type, b_slice_len, b_broadcast_factor, b_slices_m1, in_place=True, workers=workers)


_INNER_2D_BRANCH = {
    ("ADD", False): 3,
    ("ADD", True): 2,
    ("SUBTRACT", False): 4,
    ("SUBTRACT", True): 4,
    ("MULTIPLY", False): 2,
    ("MULTIPLY", True): 3,
    ("DIVIDE", False): 3,
    ("DIVIDE", True): 2,
}


def _inner_2d(op: str, dtype: str, slices: Sequence[Sequence[int]], in_place: bool) -> int:
    core = _core(op, dtype, False)
    start = 7 if op == "DIVIDE" else 4
    half_row = 13 if op == "MULTIPLY" else 15
    row = half_row if dtype == "half" else 9
    return start + _INNER_2D_BRANCH[op, in_place] + sum(row + core(n, blocks) for n, blocks in slices)


def _inner_2d_flops(*, op: str, type: str, slices: Sequence[Sequence[int]]) -> int:
    return p.op_flops(op, type, sum(n * blocks for n, blocks in slices))


def _inner_2d_read(*, slices: Sequence[Sequence[int]], **_: object) -> tuple[int, ...]:
    """Elements of the data, and of the vectors."""
    return sum(n * blocks for n, blocks in slices), sum(n for n, _ in slices)


@codelet(
    "popops::BroadcastVectorInner2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:1318",
    formula=f"7 to 10 + per slice: 9 float, 13 or 15 half, + core; {_INNER_TEXT}",
    state_bytes=lambda *, slices, **_: p.rows_state(len(slices), 4, 4, 4, scalars=8 + 4 * len(slices)),
    code_bytes=_inner_code_bytes,
    flops=_inner_2d_flops,
    operands=sized(_inner_2d_read, lambda **sizes: _inner_2d_read(**sizes)[:1]),
)
def broadcast_vector_inner_2d(*, op: str, type: str, slices: Sequence[Sequence[int]]) -> int:
    """Worker cycles; `slices` are (elements of the vector, rows it is used on)."""
    return _inner_2d(op, type, slices, in_place=False)


@codelet(
    "popops::BroadcastVectorInner2DInPlace",
    kind="worker",
    source=f"{p.ESTIMATORS}:1356",
    formula=f"6 to 10 + per slice: 9 float, 13 or 15 half, + core; {_INNER_TEXT}",
    state_bytes=lambda *, slices, **_: p.rows_state(len(slices), 4, 4, scalars=8 + 4 * len(slices)),
    code_bytes=_inner_code_bytes,
    flops=_inner_2d_flops,
    operands=sized(_inner_2d_read, lambda **sizes: _inner_2d_read(**sizes)[:1]),
)
def broadcast_vector_inner_2d_in_place(*, op: str, type: str, slices: Sequence[Sequence[int]]) -> int:
    """Worker cycles; `slices` are (elements of the vector, rows it is used on)."""
    return _inner_2d(op, type, slices, in_place=True)


def _outer(
    op: str, dtype: str, rows: int, columns: int, misaligned: bool, by_row: bool, *, workers: int, data_path_bytes: int
) -> int:
    cost = p.op_cost("broadcast", op, dtype, data_path_bytes)
    elements = columns if by_row else ceil_div(columns, workers)
    per_row = (25 if misaligned else 7) + p.loop_cycles(
        elements, cost.elements if cost.open_loop else 1, cost.cycles + 1
    )
    return p.multi(15 + (ceil_div(rows, workers) if by_row else rows) * per_row, workers)


def _outer_flops(*, op: str, type: str, rows: int, columns: int, allow_misaligned: bool) -> int:
    return p.op_flops(op, type, rows * columns)


def _outer_read(*, rows: int, columns: int, **_: object) -> tuple[int, ...]:
    """Elements of the data, and of a vector that goes once or several times over the rows."""
    return rows * columns, *(size for size in range(1, rows + 1) if rows % size == 0)


_OUTER_TEXT = "25 (7 if aligned) + one cycle more than the operation per vector"


def _outer_codelet(name: str, by_row: bool, pointers: int) -> None:
    split = "rows / workers rows of all columns" if by_row else "all rows of columns / workers"

    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATORS}:232",
        formula=f"workers * (15 + {split}: {_OUTER_TEXT}) + 11",
        state_bytes=lambda **_: pointers * p.POINTER + p.SPAN + 4,
        code_bytes=400,
        flops=_outer_flops,
        operands=sized(_outer_read, lambda *, rows, columns, **_: (rows * columns,)),
    )
    def outer_cycles(
        *, op: str, type: str, rows: int, columns: int, allow_misaligned: bool, workers: int, data_path_bytes: int
    ) -> int:
        """Tile cycles of `data[r, c] op B[r]`."""
        return _outer(
            op, type, rows, columns, allow_misaligned, by_row, workers=workers, data_path_bytes=data_path_bytes
        )


for _suffix, _pointers in (("", 2), ("InPlace", 1)):
    _outer_codelet(f"popops::BroadcastVectorOuterByRow1D{_suffix}", True, _pointers)
    _outer_codelet(f"popops::BroadcastVectorOuterByColumn1D{_suffix}", False, _pointers)
