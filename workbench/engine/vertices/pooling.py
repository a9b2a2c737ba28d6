"""PopNN pooling: forward maximum and sum (average scales the sum), and the gradients of maximum pooling.

The arithmetic also takes numpy arrays of sizes, for a pooling planner.
"""

from __future__ import annotations

from typing import Any, Literal

from workbench.engine.vertices import codelet
from workbench.engine.vertices.popops import vector_width
from workbench.engine.vertices.sizes import Sizes, larger, where, whole_number, worker_row_sums

_SOURCE = "poplibs@7eac0f26 lib/popnn/PerformanceEstimation.hpp:127"
_LIST_UNPACK = 5  # a delta list whose elements hold offset and count, the form of Mk2
_UNSIGNED = 1 << 32

Mode = Literal["max", "sum", "max_grad"]
_VECTOR_FIXED = {"max": 4, "sum": 5, "max_grad": 7}
_VECTOR_STEP = {"max": 3, "sum": 3, "max_grad": 5}


def _row_cycles(length: Sizes, *, mode: Mode, kernel_elements: Sizes, vectors: Sizes, chan_groups: Sizes) -> Sizes:
    """Worker cycles of one run of `length` outputs of a row, over the kernel, the channel groups and their vectors."""
    inner = 3 + _VECTOR_FIXED[mode] + _VECTOR_STEP[mode] * (length - 1)
    moves = (6 if mode == "max_grad" else 4) * (chan_groups - 1)
    item = 23 + chan_groups * (2 + vectors * inner) + moves
    return 15 + kernel_elements * item


def pool_cycles(
    *,
    mode: Mode,
    type: str,
    positions: Sizes,
    row_width: Sizes,
    kernel_elements: Sizes,
    chans_per_group: Sizes,
    chan_groups: Sizes = 1,
    workers: int,
    list_unpack: int = _LIST_UNPACK,
    data_path_bytes: int,
) -> Sizes:
    """Tile cycles of one pooling vertex.

    `positions`: outputs (batch x field) of the tile in rows of `row_width` (divided by the stride where the
    gradient strides), shared by the workers; `kernel_elements`: window positions; `chans_per_group`: channels of a
    group (a multiple of 2 floats or 4 halves). Windows are counted whole, as PopLibs' planner counts them.
    Source: poplibs@7eac0f26 lib/popnn/PerformanceEstimation.hpp:127.
    """
    vectors = chans_per_group // vector_width(type, data_path_bytes)
    kinds: dict[str, Any] = {
        "mode": mode,
        "kernel_elements": kernel_elements,
        "vectors": vectors,
        "chan_groups": chan_groups,
    }
    begin = (2 if mode == "sum" else 1) + 8 + 2 * list_unpack + (6 if mode == "max_grad" else 0)
    share = positions * vectors // workers
    # Unsigned arithmetic of the vertex: with several vectors a position the remainder wraps, and all take one more.
    rest = (positions - share * workers) % _UNSIGNED
    busiest: Sizes = 0
    for worker, rows in enumerate(
        worker_row_sums(positions, row_width, workers, lambda length: _row_cycles(length, **kinds))
    ):
        start = 23 + (4 + share + where(rest > worker, 1, 0)) * chan_groups
        busiest = larger(busiest, start + where(rows == 0, 0, begin + rows) + 1)
    return 13 + workers * busiest


def _state(extra: int) -> Any:
    """Pointers and sizes, a start per worker, a base per row, three shorts per window position of a row."""

    def state_bytes(*, positions: int, row_width: int, kernel_elements: int, workers: int, **_: Any) -> int:
        runs = whole_number(sum(worker_row_sums(positions, row_width, workers, lambda length: 1)))
        return 48 + extra + 2 * workers + 4 * runs + runs * (4 + 6 * kernel_elements)

    return state_bytes


def _flops(scaled: bool) -> Any:
    """One operation per element and window position, and one per element when the result is scaled."""

    def flops(*, positions: int, kernel_elements: int, chans_per_group: int, chan_groups: int = 1, **_: Any) -> int:
        return chan_groups * chans_per_group * positions * (kernel_elements + scaled)

    return flops


_FORMULA = (
    "13 + workers*max over them of (24 + (4 + positions*vectors/workers)*groups + 19|20|25 + rows*(15 + "
    "kernel*(23 + groups*(2"
    " + vectors*({step})))))"
)


@codelet(
    "popnn::MaxPooling",
    kind="multi",
    source=_SOURCE,
    formula=_FORMULA.format(step="4 + 3*n"),
    state_bytes=_state(0),
    code_bytes=868,
    flops=_flops(False),
)
def max_pooling(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Tile cycles of forward maximum pooling; arguments as of `pool_cycles`."""
    return whole_number(pool_cycles(mode="max", workers=workers, data_path_bytes=data_path_bytes, **arguments))


@codelet(
    "popnn::SumPooling",
    kind="multi",
    source=_SOURCE,
    formula=_FORMULA.format(step="5 + 3*n"),
    state_bytes=_state(4),
    code_bytes=868,
    flops=_flops(True),
)
def sum_pooling(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Tile cycles of sum or average pooling and of their gradients; arguments as of `pool_cycles`."""
    return whole_number(pool_cycles(mode="sum", workers=workers, data_path_bytes=data_path_bytes, **arguments))


@codelet(
    "popnn::MaxPoolingGrad",
    kind="multi",
    source=_SOURCE,
    formula=_FORMULA.format(step="5 + 5*n"),
    state_bytes=_state(8),
    code_bytes=868,
    flops=_flops(False),
)
def max_pooling_grad(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Tile cycles of the gradient of maximum pooling; arguments as of `pool_cycles`."""
    return whole_number(pool_cycles(mode="max_grad", workers=workers, data_path_bytes=data_path_bytes, **arguments))


@codelet(
    "popnn::MaxPoolingGradientScale",
    kind="worker",
    source=_SOURCE,
    formula=_FORMULA.format(step="4 + 3*n"),
    state_bytes=_state(4),
    code_bytes=4 * 120,
    flops=_flops(True),
)
def max_pooling_gradient_scale(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Worker cycles of scaling a gradient by how many inputs reach the maximum; arguments as of `pool_cycles`."""
    return whole_number(pool_cycles(mode="max", workers=workers, data_path_bytes=data_path_bytes, **arguments))


@codelet(
    "popnn::SelectiveScaling",
    kind="worker",
    source="poplibs@7eac0f26 lib/popnn/popnnCycleEstimators.cpp:417",
    formula="10, whatever the sizes: PopLibs states no more",
    state_bytes=lambda *, chan_groups=1, workers, **_: 16 + 4 * chan_groups + 4 * workers + 6 * workers,
    code_bytes=4 * 60,
    flops=lambda *, positions=0, chans_per_group=1, chan_groups=1, **_: positions * chans_per_group * chan_groups,
)
def selective_scaling(**_: Any) -> int:
    """Worker cycles of dividing the borders of an average pooling by fewer elements."""
    return 10
