"""popops scaled additions of one region each (`a_type`, `b_type`, `scale_type`); those of many: `scaled_add_2d`.

`memory_constraints`: both operands lie so that two loads a cycle are possible. `layout` of both pointers is
`OnePtr` on Mk2.
"""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p

INTS = ("int", "unsigned int")


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


def _worker_cycles(
    operation: str, a_type: str, b_type: str, constrained: bool, n: int, *, workers: int, data_path_bytes: int
) -> int:
    """The slowest worker; the worker after the last with a whole extra vector takes the rest."""
    vectors, rest = divmod(n, p.vector_width(a_type, data_path_bytes))
    share, extra = divmod(vectors, workers)
    if (a_type, b_type) == ("half", "float"):
        return max(_mixed_worker(share + (w < extra), rest, w == extra) for w in range(workers))
    if a_type == "float" and operation in ("AXPLUSBY", "AXMINUSBY"):
        return max(_axpby_float_worker(share, rest, w == extra) for w in range(workers))
    loop = (1 if share >= 16 else 2) if constrained else (3 if a_type == b_type else 4)
    is_float = a_type == "float"
    return max(_plain_worker(share, rest, w == extra, loop, is_float) for w in range(workers))


def scaled_add_cycles(
    operation: str,
    a_type: str,
    b_type: str,
    constrained: bool,
    n: int,
    layout: str,
    *,
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles; `operation` is ADD, SUBTRACT, AXPLUSBY or AXMINUSBY."""
    if a_type in INTS:
        return _integer_cycles(n, operation == "SUBTRACT")
    supervisor = 21 + (6 if layout == "ScaledPtr64" else 0) + p.SUPERVISOR_CYCLES + 12 + 6
    supervisor += 13 if n % p.vector_width(a_type, data_path_bytes) else 7
    if operation == "AXPLUSBY":
        supervisor += 12 + 2 * p.unpack_cycles(layout)
    if operation == "SUBTRACT":
        supervisor += 8 if (a_type, b_type) == ("half", "float") else 7
    return supervisor + workers * _worker_cycles(
        operation, a_type, b_type, constrained, n, workers=workers, data_path_bytes=data_path_bytes
    )


def mixed_core_cycles(count: int) -> int:
    """Half data, float scales: worker cycles of `count` elements, in pairs after a start of four.

    Of five elements PopLibs takes one pair less than none (unsigned arithmetic that wraps).
    """
    if count > 4:
        pairs = (count - 4) // 2 - 1
        return 4 + 15 + pairs * 5 + (9 if count % 2 else 0) + 1
    return 4 + 1 + {1: 14, 2: 13, 3: 22}.get(count, 0) + 1


def _axpby_mixed_cycles(constrained: bool, n: int, layout: str, *, workers: int) -> int:
    scaled = layout == "ScaledPtr64"
    share, final = divmod(n, workers)
    count = share // 2 * 2
    extra = share % workers + ceil_div(final, 2)
    supervisor = (7 if constrained else 1) + (12 if scaled else 6) + 10 + 15 * 6 + 14
    supervisor += 28 + (2 if scaled else 0) + (5 if final == 0 else 0)

    def worker(index: int) -> int:
        own = count + (2 if index <= extra else 0) + (final if index == extra else 0)
        return 19 + mixed_core_cycles(own) + (index == extra)

    return supervisor + workers * max(worker(index) for index in range(workers))


_LOOP_TEXT = (
    "worker 15 + 6 + cycles per vector * (vectors - 1) + remainder; 3 a vector, with memory constraints 2, "
    "or 1 from 16 vectors on; half + float 5; ints 26 per 3 elements"
)
_SUPERVISOR_TEXT = "supervisor 57 (63 with a remainder; +12 aX + bY, +7 subtract)"
_SOURCE = f"{p.ESTIMATION}:473"


def _code_bytes(*, a_type: str = "half", b_type: str = "half", scale_type: str = "half", **_: object) -> int:
    """Assembly files ScaledAddSupervisor_{fp,float_half}.S, ScaledAdd_half_half_float.S, 4 B an instruction."""
    if a_type in INTS:
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
    formula=f"{_SUPERVISOR_TEXT} + workers * ({_LOOP_TEXT})",
    state_bytes=lambda **_: 3 * p.POINTER + 4,
    code_bytes=_code_bytes,
    flops=_add_flops,
)
def scaled_add(
    *,
    a_type: str,
    b_type: str,
    scale_type: str,
    memory_constraints: bool,
    n: int,
    layout: str = "OnePtr",
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles of `A += scale * B` over n elements."""
    return scaled_add_cycles(
        "ADD", a_type, b_type, memory_constraints, n, layout, workers=workers, data_path_bytes=data_path_bytes
    )


@codelet(
    "popops::ScaledSubtractSupervisor",
    kind="multi",
    source=_SOURCE,
    formula=f"{_SUPERVISOR_TEXT} + workers * ({_LOOP_TEXT})",
    state_bytes=lambda **_: 3 * p.POINTER + 4,
    code_bytes=_code_bytes,
    flops=_add_flops,
)
def scaled_subtract(
    *,
    a_type: str,
    b_type: str,
    scale_type: str,
    memory_constraints: bool,
    n: int,
    layout: str = "OnePtr",
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles of `A -= scale * B` over n elements."""
    return scaled_add_cycles(
        "SUBTRACT", a_type, b_type, memory_constraints, n, layout, workers=workers, data_path_bytes=data_path_bytes
    )


def _axpby_flops(*, type: str, n: int, **_: object) -> int:
    return 3 * n if p.is_float(type) else 0


def _axpby_codelet(name: str, operation: str, line: int) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATORS}:{line}",
        formula=f"half data with float scales: 149 to 160 + workers * (19 + 5 a pair); else {_SUPERVISOR_TEXT} "
        f"+ workers * ({_LOOP_TEXT})",
        state_bytes=lambda **_: 4 * p.POINTER + 4,
        code_bytes=936 if operation != "AXMINUSBY" else 700,
        flops=_axpby_flops,
    )
    def axpby_cycles(
        *,
        type: str,
        scale_type: str,
        memory_constraints: bool,
        n: int,
        layout: str = "OnePtr",
        workers: int,
        data_path_bytes: int,
    ) -> int:
        """Tile cycles of `X = a * X + b * Y` (or minus) over n elements."""
        if (type, scale_type) == ("half", "float"):
            return _axpby_mixed_cycles(memory_constraints, n, layout, workers=workers)
        # PopLibs passes the scale's type as that of Y for the minus form; both are equal here.
        return scaled_add_cycles(
            operation, type, type, memory_constraints, n, layout, workers=workers, data_path_bytes=data_path_bytes
        )


_axpby_codelet("popops::aXPlusbYSupervisor", "AXPLUSBY", 532)
_axpby_codelet("popops::aXMinusbYSupervisor", "AXMINUSBY", 543)
_axpby_codelet("popops::XMinusaXPlusbYSupervisor", "AXPLUSBY", 556)
