"""popops casts and fills, and a worker's setting of memory."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import alike, copied

_INT8 = ("unsigned char", "signed char", "char")
_INT64 = ("long long", "unsigned long long")
_SIGNED = ("int", "char", "short")


def _piped_atoms(elements: int, atom: int, fill: int, per_atom: int, remainders: tuple[int, int, int]) -> int:
    """A software-pipelined loop over atoms; what is left over costs a path of its own, 2 if nothing is."""
    atoms, rest = divmod(elements, atom)
    cycles = fill + (atoms - 1) * per_atom if atoms else 0
    if rest == 0:
        return cycles + 2
    return cycles + (remainders[rest - 1] if rest <= 3 else remainders[0] * rest)


def _eight_bit_cycles(elements: int, from_type: str, to_type: str) -> int | None:
    """The assembly casts from and to 8-bit types, None for any other pair."""
    if from_type == "unsigned char" and to_type == "half":
        return 4 + _piped_atoms(elements, 4, 14, 9, (12, 14, 22))
    if from_type == "half" and to_type in _INT8:
        return 4 + 4 + _piped_atoms(elements, 4, 19, 16, (14, 21, 29))
    if from_type == "quarter" and to_type in _INT8:
        return 4 + _piped_atoms(elements, 8, 0, 28, (5, 5, 5))
    if from_type in _INT8 and to_type == "quarter":
        return 4 + _piped_atoms(elements, 8, 0, 37, (7, 7, 7))
    if from_type == to_type == "quarter":
        return 4 + _piped_atoms(elements, 8, 0, 13, (5, 5, 5))
    return None


def _vector_cycles(elements: int, from_type: str, to_type: str, *, data_path_bytes: int) -> int:
    load, store = (p.elements_per_load(dtype, data_path_bytes) for dtype in (from_type, to_type))
    pair = {from_type, to_type}
    floating = pair <= {"float", "half"} or pair == {"quarter", "half"}
    width = min(2 * load, store) if floating else 1
    cycles_per_vector = max(width // min(width, load), width // min(width, store)) + (0 if floating else 1)
    rest = elements % width
    remainder_cycles = sum(1 + (2 if rest >> bit & 1 else 0) for bit in range(p.ceil_log2(width)))
    return 19 + cycles_per_vector * (elements // width) + remainder_cycles


def cast_worker_cycles(elements: int, from_type: str, to_type: str, *, data_path_bytes: int) -> int:
    """Worker cycles of casting `elements`; vectors stream one 64-bit port for floats, else element by element."""
    if to_type in _INT64:
        return 3 + elements * (4 + (from_type in _SIGNED))
    eight_bit = _eight_bit_cycles(elements, from_type, to_type)
    if eight_bit is not None:
        return eight_bit
    return _vector_cycles(elements, from_type, to_type, data_path_bytes=data_path_bytes)


_CAST_TEXT = (
    "cast(n) = 19 + n / v * max(load, store cycles of a vector) + remainder, element by element (2 each) "
    "unless both types are floating; 8-bit pairs by atoms of 4 or 8"
)


def _cast_flops(*, from_type: str, to_type: str, num_elems: int) -> int:
    return num_elems if p.is_float(from_type) or p.is_float(to_type) else 0


@codelet(
    "popops::Cast1D",
    kind="multi",
    source=f"{p.ESTIMATION}:356",
    formula=f"12 + workers * (18 + cast(ceil(n / workers))); {_CAST_TEXT}",
    state_bytes=lambda **_: 2 * p.POINTER + 4,
    code_bytes=200,
    flops=_cast_flops,
    operands=alike,
)
def cast_1d(*, from_type: str, to_type: str, num_elems: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of casting `num_elems` elements, split over the workers."""
    share = ceil_div(num_elems, workers)
    return 12 + workers * (18 + cast_worker_cycles(share, from_type, to_type, data_path_bytes=data_path_bytes))


@codelet(
    "popops::Cast1DSingleWorker",
    kind="worker",
    source=f"{p.ESTIMATION}:345",
    formula=f"5 + cast(n); {_CAST_TEXT}",
    state_bytes=lambda **_: 2 * p.POINTER + 4,
    code_bytes=200,
    flops=_cast_flops,
    operands=alike,
)
def cast_1d_single_worker(*, from_type: str, to_type: str, num_elems: int, data_path_bytes: int) -> int:
    """Worker cycles of casting `num_elems` elements in one worker."""
    return 5 + cast_worker_cycles(num_elems, from_type, to_type, data_path_bytes=data_path_bytes)


def _cast_2d_flops(*, from_type: str, to_type: str, rows: Sequence[int]) -> int:
    return _cast_flops(from_type=from_type, to_type=to_type, num_elems=p.total(rows))


@codelet(
    "popops::Cast2D",
    kind="worker",
    source=f"{p.ESTIMATION}:332",
    formula=f"5 + per row: 11 + cast(elements); {_CAST_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.POINTER, p.SPAN),
    code_bytes=240,
    flops=_cast_2d_flops,
    operands=alike,
)
def cast_2d(*, from_type: str, to_type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of casting rows of the given elements."""
    return 5 + sum(11 + cast_worker_cycles(n, from_type, to_type, data_path_bytes=data_path_bytes) for n in rows)


def fill_cycles(dtype: str, elements: int, *, data_path_bytes: int) -> int:
    """Worker cycles of filling `elements`, the data path a cycle after the alignment of both ends."""
    if dtype in _INT64:
        return 5 + elements
    if p.type_bytes(dtype) == 1 and dtype != "quarter":
        half_path = data_path_bytes // 2
        return 28 + elements // half_path if elements < 64 else 39 + elements // data_path_bytes
    if dtype == "half":
        return {1: 15, 2: 21}.get(elements, 26 + elements // (data_path_bytes // 2))
    vector = data_path_bytes // 4
    return 23 + elements // vector + (elements % vector > 0)


_FILL_TEXT = (
    "float and int 23 + n / v (+1 for a rest); half 26 + n / v, v elements of the data path; 8 bits 28 + two per data "
    "path below 64, else 39 + n / data path bytes"
)


@codelet(
    "popops::Fill",
    kind="worker",
    source=f"{p.ESTIMATION}:368",
    formula=_FILL_TEXT,
    state_bytes=lambda *, type, **_: max(4, p.type_bytes(type)) + p.SPAN,
    code_bytes=320,
)
def fill(*, type: str, n: int, data_path_bytes: int) -> int:
    """Worker cycles of writing one value over n elements."""
    return fill_cycles(type, n, data_path_bytes=data_path_bytes)


@codelet(
    "popops::Fill2d",
    kind="worker",
    source=f"{p.ESTIMATION}:447",
    formula=f"5 (6 unless half) + per row: fill - 2 (3 unless half); fill: {_FILL_TEXT}",
    state_bytes=lambda *, type, rows: p.rows_state(len(rows), p.SPAN, scalars=max(4, p.type_bytes(type))),
    code_bytes=380,
)
def fill_2d(*, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of writing one value over rows of the given elements."""
    fills = 5 + sum(fill_cycles(type, n, data_path_bytes=data_path_bytes) for n in rows)
    if type in _INT64:
        return fills - 2 * len(rows)
    other = int(type != "half")
    return fills + other - (2 + other) * len(rows)


@codelet(
    "poplar::Memset",
    kind="worker",
    source=f"{p.ESTIMATION}:368 (64-bit stores of Fill over plain bytes)",
    formula="23 + ceil(bytes / data path bytes): one store of it a cycle after the alignment of both ends",
    state_bytes=lambda **_: p.SPAN + 4,
    code_bytes=120,
    operands=copied,
)
def memset(*, bytes: int, data_path_bytes: int) -> int:
    """Worker cycles of setting `bytes` of memory."""
    return 23 + ceil_div(bytes, data_path_bytes)


@codelet(
    "popops::CheckAccuracyWhenCast",
    kind="worker",
    source=f"{p.ESTIMATORS}:1486",
    formula="30, one comparison of a value with its cast",
    state_bytes=lambda **_: 2 * p.POINTER + 4,
    code_bytes=120,
)
def check_accuracy_when_cast(*, input_type: str, output_type: str) -> int:
    """Worker cycles of whether one value keeps its accuracy in the output type."""
    p.type_bytes(input_type)
    p.type_bytes(output_type)
    return 30
