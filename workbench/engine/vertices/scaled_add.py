"""popops scaled additions (`a_type`, `b_type`, `scale_type`), Hadamard product and multiplication by a scalar.

`memory_constraints`: both operands lie so that two loads a cycle are possible. `layout` of the pointers is
`OnePtr` on Mk2.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.engine.vertices import _popops as p
from workbench.engine.vertices import codelet

_INTS = ("int", "unsigned int")


def _integer_cycles(n: int, subtract: bool) -> int:
    tail = 26 * (n % 3)
    return 53 + 26 * (n // 3) + subtract + 6 + tail + 8 + 6


def _mixed_worker(vectors: int, rest: int, takes_rest: bool) -> int:
    """Half data plus float data: five cycles a vector."""
    cycles = 16 + (9 + 5 * (vectors - 1) if vectors else 0) + 2 + 1
    if takes_rest:
        cycles += 1
        if rest:
            cycles += 4 + (5 if rest >= 2 else 0) + (6 if rest % 2 else 0)
    return cycles


def _axpby_float_worker(vectors: int, rest: int, takes_rest: bool) -> int:
    loop = 6 + 3 * (vectors - 1) if vectors else 0
    return 16 + loop + (1 + (5 if rest else 0) if takes_rest else 0) + 1


def _plain_worker(vectors: int, rest: int, takes_rest: bool, loop_cycles: int, is_float: bool) -> int:
    cycles = 15 + (6 + loop_cycles * (vectors - 1) if vectors else 0) + 2 + 1
    if not takes_rest:
        return cycles
    if rest == 0:
        return cycles + 1
    if is_float:
        return cycles + 1 + 8
    return cycles + 1 + 5 + (7 if rest >= 2 else 0) + (6 if rest == 3 else 0)


def _worker_cycles(operation: str, a_type: str, b_type: str, constrained: bool, n: int) -> int:
    """The slowest of six workers; the worker after the last with a whole extra vector takes the rest."""
    vectors, rest = divmod(n, p.vector_width(a_type))
    share, extra = divmod(vectors, p.WORKERS)
    if (a_type, b_type) == ("half", "float"):
        return max(_mixed_worker(share + (w < extra), rest, w == extra) for w in range(p.WORKERS))
    if a_type == "float" and operation in ("AXPLUSBY", "AXMINUSBY"):
        return max(_axpby_float_worker(share, rest, w == extra) for w in range(p.WORKERS))
    loop = (1 if share >= 16 else 2) if constrained else (3 if a_type == b_type else 4)
    is_float = a_type == "float"
    return max(_plain_worker(share, rest, w == extra, loop, is_float) for w in range(p.WORKERS))


def scaled_add_cycles(operation: str, a_type: str, b_type: str, constrained: bool, n: int, layout: str) -> int:
    """Tile cycles; `operation` is ADD, SUBTRACT, AXPLUSBY or AXMINUSBY."""
    if a_type in _INTS:
        return _integer_cycles(n, operation == "SUBTRACT")
    scaled = layout != "OnePtr"
    supervisor = 21 + (6 if scaled else 0) + p.SUPERVISOR_CYCLES + 12 + 6
    supervisor += 13 if n % p.vector_width(a_type) else 7
    if operation == "AXPLUSBY":
        supervisor += 12 + (2 if scaled else 0)
    if operation == "SUBTRACT":
        supervisor += 8 if (a_type, b_type) == ("half", "float") else 7
    return supervisor + p.WORKERS * _worker_cycles(operation, a_type, b_type, constrained, n)


def _mixed_core(count: int) -> int:
    """Half data, float scales: the one worker path that works in pairs after a start of four."""
    if count > 4:
        pairs = (count - 4) // 2 - 1
        return 4 + 15 + max(pairs, 0) * 5 + (9 if count % 2 else 0) + 1
    return 4 + 1 + {1: 14, 2: 13, 3: 22}.get(count, 0) + 1


def _axpby_mixed_cycles(constrained: bool, n: int) -> int:
    share, final = divmod(n, p.WORKERS)
    count = share // 2 * 2
    extra = share % p.WORKERS + p.ceil_div(final, 2)
    supervisor = (7 if constrained else 1) + 6 + 10 + 15 * 6 + 14 + 28 + (5 if final == 0 else 0)

    def worker(index: int) -> int:
        own = count + (2 if index <= extra else 0) + (final if index == extra else 0)
        return 19 + _mixed_core(own) + (index == extra)

    return supervisor + p.WORKERS * max(worker(index) for index in range(p.WORKERS))


_LOOP_TEXT = (
    "worker 15 + 6 + cycles per vector * (vectors - 1) + remainder; 3 a vector, with memory constraints 2, "
    "or 1 from 16 vectors on; half + float 5; ints 26 per 3 elements"
)
_SUPERVISOR_TEXT = "supervisor 57 (63 with a remainder; +12 aX + bY, +7 subtract)"
_SOURCE = f"{p.ESTIMATION}:473"


def _code_bytes(*, a_type: str = "half", b_type: str = "half", scale_type: str = "half", **_: object) -> int:
    """Assembly files ScaledAddSupervisor_{fp,float_half}.S, ScaledAdd_half_half_float.S, 4 B an instruction."""
    if a_type in _INTS:
        return 240
    if a_type != b_type:
        return 224
    return 580 if a_type != scale_type else 700


def _add_flops(*, a_type: str, n: int, **_: object) -> int:
    return 2 * n if p.is_float(a_type) else 0


@codelet(
    "popops::ScaledAddSupervisor",
    kind="multi",
    source=_SOURCE,
    formula=f"{_SUPERVISOR_TEXT} + 6 * ({_LOOP_TEXT})",
    state_bytes=lambda **_: 3 * p.POINTER + 4,
    code_bytes=_code_bytes,
    flops=_add_flops,
)
def scaled_add(
    *, a_type: str, b_type: str, scale_type: str, memory_constraints: bool, n: int, layout: str = "OnePtr"
) -> int:
    """Tile cycles of `A += scale * B` over n elements."""
    return scaled_add_cycles("ADD", a_type, b_type, memory_constraints, n, layout)


@codelet(
    "popops::ScaledSubtractSupervisor",
    kind="multi",
    source=_SOURCE,
    formula=f"{_SUPERVISOR_TEXT} + 6 * ({_LOOP_TEXT})",
    state_bytes=lambda **_: 3 * p.POINTER + 4,
    code_bytes=_code_bytes,
    flops=_add_flops,
)
def scaled_subtract(
    *, a_type: str, b_type: str, scale_type: str, memory_constraints: bool, n: int, layout: str = "OnePtr"
) -> int:
    """Tile cycles of `A -= scale * B` over n elements."""
    return scaled_add_cycles("SUBTRACT", a_type, b_type, memory_constraints, n, layout)


def _axpby_flops(*, type: str, n: int, **_: object) -> int:
    return 3 * n if p.is_float(type) else 0


def _axpby_codelet(name: str, operation: str, line: int) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATORS}:{line}",
        formula=f"half data with float scales: 149 to 160 + 6 * (19 + 5 a pair); else {_SUPERVISOR_TEXT} "
        f"+ 6 * ({_LOOP_TEXT})",
        state_bytes=lambda **_: 4 * p.POINTER + 4,
        code_bytes=936 if operation != "AXMINUSBY" else 700,
        flops=_axpby_flops,
    )
    def axpby_cycles(*, type: str, scale_type: str, memory_constraints: bool, n: int, layout: str = "OnePtr") -> int:
        """Tile cycles of `X = a * X + b * Y` (or minus) over n elements."""
        if (type, scale_type) == ("half", "float"):
            return _axpby_mixed_cycles(memory_constraints, n)
        # PopLibs passes the scale's type as that of Y for the minus form; both are equal here.
        return scaled_add_cycles(operation, type, type, memory_constraints, n, layout)


_axpby_codelet("popops::aXPlusbYSupervisor", "AXPLUSBY", 532)
_axpby_codelet("popops::aXMinusbYSupervisor", "AXMINUSBY", 543)
_axpby_codelet("popops::XMinusaXPlusbYSupervisor", "AXPLUSBY", 556)


def _half_rest(rest: int) -> int:
    return (4 if rest else 0) + (6 if rest >= 2 else 0) + (7 if rest % 2 else 0)


def _row_cycles(dtype: str, n: int, loop: int) -> int:
    vectors, rest = divmod(n, p.vector_width(dtype))
    tail = (7 if rest else 0) if dtype == "float" else _half_rest(rest)
    return 15 + (5 + vectors * loop if vectors else 0) + tail


def _scaled_2d(operation: str, dtype: str, constrained: bool, rows: Sequence[int]) -> int:
    if dtype in _INTS:
        return 9 + sum(7 + 5 * n for n in rows) + (operation == "SUBTRACT")
    loop = 2 if constrained and not (operation == "AXPLUSBY" and dtype == "float") else 3
    start = 10 + {"SUBTRACT": 2, "AXPLUSBY": 6}.get(operation, 0)
    return start + sum(_row_cycles(dtype, n, loop) for n in rows)


def _scaled_2d_codelet(name: str, operation: str, line: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula="10 (+2 subtract, +6 aX + bY) + per row: 15 + 5 + 3 a vector (2 with memory constraints) + rest",
        state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER, scalars=2 * p.POINTER),
        code_bytes=488,
        flops=lambda *, type, rows, **_: 2 * p.total(rows) if p.is_float(type) else 0,
    )
    def scaled_2d_cycles(*, type: str, memory_constraints: bool, rows: Sequence[int]) -> int:
        """Worker cycles over rows of the given elements."""
        return _scaled_2d(operation, type, memory_constraints, rows)


_scaled_2d_codelet("popops::ScaledAdd2D", "ADD", 655)
_scaled_2d_codelet("popops::ScaledSubtract2D", "SUBTRACT", 661)
_scaled_2d_codelet("popops::aXPlusbY2D", "AXPLUSBY", 667)


@codelet(
    "popops::HadamardProd",
    kind="worker",
    source=f"{p.ESTIMATORS}:1396",
    formula="5 + per row: 6 + 2 * ceil(elements / v)",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER),
    code_bytes=160,
    flops=lambda *, type, rows: p.op_flops("MULTIPLY", type, p.total(rows)),
)
def hadamard_prod(*, type: str, rows: Sequence[int]) -> int:
    """Worker cycles of `A[i] *= B[i]` over rows of the given elements."""
    width = 2 if type == "float" else 4
    return 5 + sum(6 + 2 * p.ceil_div(n, width) for n in rows)


def _scalar_multiply_loops(loops: int, rest: int) -> int:
    cycles = 1 + (7 + 5 * (loops - 1) if loops else 0) + 1
    if rest == 0:
        return cycles
    return cycles + 2 + 4 + (5 if rest > 1 else 0) + (6 if rest % 2 else 0) + 1


def _scalar_multiply(n: int) -> int:
    """Half by a float scalar: four elements a loop, checked for accuracy first."""
    grain = 4
    per_round = grain * p.WORKERS
    keeper = (n % per_round - 1) // grain
    slowest = max(
        _scalar_multiply_loops(
            (n + grain * (p.WORKERS - 1 - worker)) // per_round, n % grain if worker == keeper else 0
        )
        for worker in range(p.WORKERS)
    )
    return p.WORKERS * (50 + slowest + 1)


def _scalar_multiply_codelet(name: str, pointers: int) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATORS}:2731",
        formula="6 * (51 + 9 + 5 per further 4 elements + remainder), elements over six workers",
        state_bytes=lambda **_: p.SPAN + pointers * p.POINTER + 4,
        code_bytes=300,
        flops=lambda *, n: n,
    )
    def scalar_multiply_cycles(*, n: int) -> int:
        """Tile cycles of multiplying n halves by one float."""
        return _scalar_multiply(n)


_scalar_multiply_codelet("popops::ScalarMultiply1D", 2)
_scalar_multiply_codelet("popops::ScalarMultiply1DInplace", 1)
