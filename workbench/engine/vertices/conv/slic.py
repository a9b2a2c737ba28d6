"""The SLIC convolution vertex: a 1x4 window over grouped convolutions of few channels."""

from __future__ import annotations

from typing import Any

from workbench.engine.vertices import codelet
from workbench.engine.vertices.conv.quarter import SLIC_LOAD_CYCLES, slic_inner_quarter, slic_quarter
from workbench.engine.vertices.sizes import Sizes, larger, where, whole_number, worker_row_sums

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"
_WINDOW = 4


def slic_weight_load_cycles(
    *, conv_groups_per_group: int, chans_per_group: int, in_type: str = "half", workers: int
) -> int:
    """Tile cycles to load one window's weights; fewer than 4 channels are first rearranged by the workers.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1085.
    """
    if in_type == "quarter":
        return SLIC_LOAD_CYCLES
    if chans_per_group == 4:
        return 18 + 16
    rearrange = 12 if conv_groups_per_group == 2 else 10
    return 21 + (rearrange + (conv_groups_per_group > 4)) * workers + 16


def _row_cycles(length: Sizes, *, stride: int, zeroing: bool, split_output: bool) -> Sizes:
    """Worker cycles of one pass over a run of `length` outputs."""
    if stride == 2:
        return where(length < 3, 10 + where(length == 1, 3, 5), 15 + 2 * (length - 3))
    if zeroing:
        short = 13 + where(length > 1, length, 0)
        return where(length < (6 if split_output else 5), short, 15 + (length - 5))
    short = where(length == 1, 13, 17 + length)
    return where(length < (6 if split_output else 5), short, 15 + (length - 5) + (3 if split_output else 0))


def slic_inner_cycles(
    *,
    positions: Sizes,
    row_width: Sizes,
    zeroing: bool,
    conv_groups_per_group: int,
    partials_type: str,
    conv_chains: int,
    in_type: str = "half",
    stride: int = 1,
    workers: int,
) -> Sizes:
    """Tile cycles of all workers for one convolution-group block and one window.

    `positions`: outputs (batch x field) in rows of `row_width`.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1262.
    """
    if in_type == "quarter":
        return slic_inner_quarter(
            positions=positions, row_width=row_width, zeroing=zeroing, stride=stride, workers=workers
        )
    float_partials = partials_type == "float"
    split_output = conv_chains == 2 and not float_partials
    passes = 1 if conv_chains == 4 else 2
    per_run = (9 if split_output else 10) + int(zeroing) + (3 if float_partials else 0)

    def run(length: Sizes) -> Sizes:
        row = _row_cycles(length, stride=stride, zeroing=zeroing, split_output=split_output)
        return per_run + (row - int(float_partials)) * passes

    start = 17 + (4 if conv_groups_per_group > 4 else 0)
    busiest: Sizes = 0
    for cycles in worker_row_sums(positions, row_width, workers, run):
        busiest = larger(busiest, cycles)
    merged = 2 + 2 * positions if split_output and zeroing else 0
    return (busiest + start + (2 if split_output else 0)) * workers + merged


def _loop_stalls(count: Sizes) -> Sizes:
    return 6 * (count - 1) + 1


def slic_cycles(
    *,
    positions: Sizes,
    row_width: Sizes,
    conv_groups: Sizes,
    sub_kernels: Sizes,
    conv_groups_per_group: int = 4,
    chans_per_group: int = 1,
    in_type: str = "half",
    partials_type: str = "half",
    conv_chains: int = 4,
    stride: int = 1,
    workers: int,
) -> Sizes:
    """Tile cycles of one ConvPartial1xNSLIC vertex (inputs of halves or quarters, window of 4).

    `conv_groups`: blocks of `conv_groups_per_group` groups; `sub_kernels`: windows, ceil(kernel width / 4) times
    the other kernel dimensions. Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1127.
    """
    inner: dict[str, Any] = {
        "positions": positions,
        "row_width": row_width,
        "conv_groups_per_group": conv_groups_per_group,
        "partials_type": partials_type,
        "conv_chains": conv_chains,
        "in_type": in_type,
        "stride": stride,
        "workers": workers,
    }
    first = slic_inner_cycles(zeroing=True, **inner)
    later = slic_inner_cycles(zeroing=False, **inner)
    if in_type == "quarter":
        return slic_quarter(first=first, later=later, conv_groups=conv_groups, sub_kernels=sub_kernels, workers=workers)
    load = slic_weight_load_cycles(
        conv_groups_per_group=conv_groups_per_group, chans_per_group=chans_per_group, workers=workers
    )
    split_output = conv_chains == 2 and partials_type == "half"
    per_group = 12 if split_output else 15
    if conv_groups_per_group <= 4:
        per_kernel = load + 16 + (0 if split_output else 4)
    else:
        strides = conv_groups_per_group // 4
        per_kernel = (load + 21) * strides + _loop_stalls(strides) + 15
        per_group += 8
        later = later * strides
    supervisor = (25 if split_output else 28) + per_group * conv_groups + _loop_stalls(conv_groups)
    supervisor = supervisor + per_kernel * sub_kernels + _loop_stalls(sub_kernels)
    return supervisor + conv_groups * (first + (sub_kernels - 1) * later)


def _state(
    *,
    positions: int,
    row_width: int,
    conv_groups: int,
    sub_kernels: int,
    workers: int,
    **_: Any,
) -> int:
    """Fields 32 B, a pointer per block of in, out and window of weights, three shorts per run and window."""
    runs = whole_number(sum(worker_row_sums(positions, row_width, workers, lambda length: 1)))
    return 32 + 4 * conv_groups * (2 + sub_kernels) + sub_kernels * (4 * workers + 6 * runs)


def _code(*, conv_groups_per_group: int = 4, partials_type: str = "half", conv_chains: int = 4, **_: Any) -> int:
    if conv_groups_per_group > 4:
        return 1480
    return 1484 if conv_chains == 2 and partials_type == "half" else 1552


def _flops(
    *,
    positions: int,
    conv_groups: int,
    sub_kernels: int,
    conv_groups_per_group: int = 4,
    chans_per_group: int = 1,
    **_: Any,
) -> int:
    per_position = conv_groups_per_group * chans_per_group * chans_per_group * _WINDOW
    return 2 * conv_groups * sub_kernels * per_position * positions


@codelet(
    "poplin::ConvPartial1xNSLIC",
    kind="supervisor",
    source=f"{_ESTIMATION}:1127",
    formula="28 + 15*G + 6*(G-1) + windows*(load + 20) + 6*(windows-1) + 2 + G*(inner_zeroing + (windows-1)*inner);"
    " inner = workers*(17 + runs*(10 + passes*(n + 10))); load = 34 for 4 channels, else 37 + workers*(10..12)",
    state_bytes=_state,
    code_bytes=_code,
    flops=_flops,
)
def conv_partial_1xn_slic(*, workers: int, **arguments: Any) -> int:
    """Cycles of ConvPartial1xNSLIC; arguments as of `slic_cycles`."""
    return whole_number(slic_cycles(workers=workers, **arguments))
