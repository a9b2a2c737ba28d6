"""Convolution vertices without the matrix unit: horizontal and vertical MAC, outer product, dense dot product."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.conv.amp import pointer_bytes, zero_partials_cycles
from workbench.engine.vertices.operands import sized, untold
from workbench.engine.vertices.sizes import Sizes, where, whole_number

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"
_RPT_COUNT_MAX = 4095


def dense_dot_cycles(
    *, size: Sizes, in_type: str, partials_type: str, vector_width: int, data_path_bytes: int
) -> Sizes:
    """Worker cycles of one dot product of `size` channels (two output channels at once for half/half).

    The widest power of two up to `vector_width` that divides `size` is taken per cycle; a step narrower than the data
    path takes two cycles. Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:79.
    """
    full_width = _vector(in_type, data_path_bytes)
    half_half = in_type == "half" and partials_type == "half"
    outputs = 2 if half_half else 1
    fixed = 3 * outputs + int(half_half) + 4 - int(in_type == "half")
    cycles: Sizes = fixed + outputs + 2 * size
    width = 2
    while width <= vector_width:
        step = 1 if width >= full_width else 2
        warm_up = 0 if width >= full_width else outputs
        cycles = where(size % width == 0, fixed + warm_up + size // width * step, cycles)
        width *= 2
    return cycles


def _vector(in_type: str, data_path_bytes: int) -> int:
    return data_path_bytes // (4 if in_type == "float" else 2)


def _hmac_kept(in_type: str, one_by_one: bool) -> int:
    return 15 if one_by_one else 0 if in_type == "float" else 6


def _hmac_overhead(in_type: str, one_by_one: bool) -> int:
    return (58 if in_type == "float" else 65) - 10 * one_by_one


def _hmac_run_cycles(
    length: Sizes,
    *,
    in_chans: Sizes,
    out_chans: Sizes,
    in_type: str,
    partials_type: str,
    one_by_one: bool,
    data_path_bytes: int,
) -> Sizes:
    dot = dense_dot_cycles(
        size=in_chans,
        in_type=in_type,
        partials_type=partials_type,
        vector_width=_vector(in_type, data_path_bytes),
        data_path_bytes=data_path_bytes,
    )
    outputs = out_chans if partials_type == "float" else ceil_div(out_chans, 2)
    each = 7 + outputs * dot
    single = one_by_one * (outputs == 1)
    run = (13 if one_by_one else 19) + where(single, 1 + length * (2 + dot), length * each)
    return where(length == 0, 7, run)


def _split_rows(rows: Sizes, workers: int) -> tuple[Sizes, Sizes, Sizes]:
    """Whole rows and parts of a row of the busiest worker, and into how many parts a row is cut."""
    common = np.gcd(workers, rows) if isinstance(rows, np.ndarray) else gcd(workers, rows)
    parts = workers // common
    busiest = ceil_div(rows * parts, workers)
    return busiest // parts, busiest % parts, parts


def hmac_cycles(
    *,
    rows: Sizes = 1,
    row_width: Sizes = 0,
    kernel_elements: Sizes = 1,
    in_chans: Sizes,
    out_chans: Sizes,
    in_groups: Sizes = 1,
    out_groups: Sizes = 1,
    conv_groups: Sizes = 1,
    in_type: str = "half",
    partials_type: str = "float",
    one_by_one: bool = False,
    kernel_zeroing: bool = True,
    zero_as_float: bool | None = None,
    workers: int,
    data_path_bytes: int,
    run_lengths: Sequence[Sizes] | None = None,
) -> Sizes:
    """Tile cycles of one ConvPartialHorizontalMac vertex (`one_by_one`: its 1x1 form, half to float only).

    `rows` x `row_width`: active output positions; the busiest worker gets whole rows and part of one.
    `run_lengths` states instead the runs every worker does per kernel element. `in_chans`, `out_chans`: channels
    of a block. Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:133-244, :1931.
    """
    kinds: dict[str, Any] = {
        "in_chans": in_chans,
        "out_chans": out_chans,
        "in_type": in_type,
        "partials_type": partials_type,
        "one_by_one": one_by_one,
        "data_path_bytes": data_path_bytes,
    }
    if run_lengths is None:
        whole, parts, cut = _split_rows(rows, workers)
        part_length = parts * (row_width + cut - 1) // cut
        part = where(parts == 0, 0, _hmac_run_cycles(part_length, **kinds))
        runs = where(row_width == 0, 0, whole * _hmac_run_cycles(row_width, **kinds) + part)
    else:
        runs = sum(_hmac_run_cycles(length, **kinds) for length in run_lengths)
    worker = 16 + kernel_elements * (16 - _hmac_kept(in_type, one_by_one) + runs)
    float_partials = partials_type == "float"
    # The retained state is charged once by the type of the partials, as the published estimator does.
    refill = workers * ((9 if float_partials else 10) + _hmac_kept(partials_type, one_by_one))
    loops = conv_groups * (23 + in_groups * (15 + out_groups * (10 + workers * worker)))
    # Without inputs there is only the zeroing (lib/poplin/poplinCycleEstimators.cpp:265).
    cycles = _hmac_overhead(in_type, one_by_one) + where(in_groups * in_chans == 0, 0, refill + loops)
    if not kernel_zeroing:
        return cycles
    return cycles + zero_partials_cycles(
        elements=rows * row_width * out_chans,
        groups=out_groups * conv_groups,
        float_partials=float_partials if zero_as_float is None else zero_as_float,
        workers=workers,
        data_path_bytes=data_path_bytes,
    )


def _vmac_run_cycles(taps: Sizes, *, groups_per_group: int, partials_type: str) -> Sizes:
    float_partials = partials_type == "float"
    if groups_per_group >= 8 and not float_partials:
        return (groups_per_group // 8) * (7 + 15 + 3 + 3 * (taps - 1))
    per_tap = 3 * (groups_per_group // 8) if groups_per_group >= 8 else 2 * (groups_per_group // 4)
    return 7 + (5 if float_partials else 3) + 3 + per_tap * (taps - 1)


def _vmac_start(groups_per_group: int, partials_type: str) -> int:
    if groups_per_group >= 8 and partials_type == "half":
        return 13 if groups_per_group == 8 else 25
    return 19 if partials_type == "float" else 18


def vmac_cycles(
    *,
    rows: Sizes,
    kernel_height: Sizes,
    kernel_width: Sizes,
    out_elements: Sizes,
    in_groups: Sizes = 1,
    conv_groups: Sizes = 1,
    conv_groups_per_group: int = 4,
    partials_type: str = "float",
    workers: int,
) -> Sizes:
    """Tile cycles of one ConvPartialVerticalMac vertex (depthwise, half inputs).

    `rows`: output positions (batch x field), each a run of `kernel_width` taps for each of `kernel_height`;
    `conv_groups`: blocks of `conv_groups_per_group` (4, 8 or 16) groups; `out_elements`: partials zeroed and
    reduced per block (PopLibs' planner passes field positions, its vertex positions x groups).
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:246-395, :1967.
    """
    kinds: dict[str, Any] = {"groups_per_group": conv_groups_per_group, "partials_type": partials_type}
    float_partials = partials_type == "float"
    whole, parts, cut = _split_rows(rows, workers)
    runs = whole * _vmac_run_cycles(kernel_width, **kinds)
    runs = runs + parts * _vmac_run_cycles(ceil_div(kernel_width, cut), **kinds)
    inner = workers * (_vmac_start(conv_groups_per_group, partials_type) + kernel_height * runs)
    zeroing = 4 + ceil_div(out_elements, 2 if float_partials else 4)
    per_element = (7 + 2 + 2 * (workers - 1)) if float_partials else 7 + (workers - 1)
    reduction = 10 - float_partials + per_element * ceil_div(out_elements, workers) // conv_groups_per_group
    fixed = 61 + 14 + 25 + float_partials
    return fixed + conv_groups * (zeroing + 32 + in_groups * (24 + inner) + reduction)


def outer_product_cycles(*, type: str, width: Sizes, chans: Sizes, chans_per_group: Sizes) -> Sizes:
    """Worker cycles of one OuterProduct vertex: `width` inputs times `chans` weights in groups.

    Even groups of at least 6 floats (12 halves in fours) take the unrolled path.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1516.
    """
    vector, least, group, slow = (2, 6, 11, chans_per_group * 2)
    if type == "half":
        vector, least, group, slow = (4, 12, 10, chans_per_group * 5 // 2)
    vectors = chans_per_group // vector
    unrolled = (
        (chans_per_group >= least)
        & (chans_per_group % vector == 0)
        & (vectors - 3 <= _RPT_COUNT_MAX)
        & (vectors + 1 < 512)
    )
    per_input = where(unrolled, 6 + (chans_per_group - least) // vector, 10 + slow)
    return 25 + chans // chans_per_group * (group + width * per_input)


def _hmac_state(
    *,
    kernel: int = 1,
    conv_size: int | Sequence[int] | None = None,
    rows: int = 1,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    workers: int,
    **_: Any,
) -> int:
    """Fields 44 B (three vector pointers, zeros, list, two strides, six shorts), pointers, worklists."""
    if conv_size is None:
        whole, parts, _cut = _split_rows(rows, workers)
        runs = whole_number(whole + (parts > 0))
    else:
        runs = len(conv_size) if isinstance(conv_size, Sequence) else 1
    return 44 + pointer_bytes(in_groups, out_groups, conv_groups) + kernel * workers * (4 + 6 * runs)


def _hmac_code(*, in_type: str = "half", partials_type: str = "float", **_: Any) -> int:
    return 132 + {("float", "float"): 760, ("half", "float"): 720}.get((in_type, partials_type), 808)


def _hmac_total(conv_size: int | Sequence[int] | None, rows: int, row_width: int, workers: int) -> int:
    if conv_size is None:
        return rows * row_width
    return workers * (sum(conv_size) if isinstance(conv_size, Sequence) else conv_size)


def _hmac_flops(
    *,
    in_chans: int,
    out_chans: int,
    kernel: int = 1,
    conv_size: int | Sequence[int] | None = None,
    rows: int = 1,
    row_width: int = 0,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    workers: int,
    **_: Any,
) -> int:
    total = _hmac_total(conv_size, rows, row_width, workers) * kernel
    return 2 * conv_groups * in_groups * out_groups * in_chans * out_chans * total


_HMAC_FORMULA = (
    "65|58 half|float (-10 in the 1x1 form) + workers*(9|10 + kept) + zeroing + G*(23 + inG*(15 + outG*(10 + "
    "workers*(16 + kernel*(16 - kept"
    " + runs*(19 + n*(7 + out*dot))))))); dot = 7 + size/4 half/float (10 + size/4 for two outputs half/half,"
    " 7 + size/2 float)"
)


@codelet(
    "poplin::ConvPartialHorizontalMac",
    kind="supervisor",
    source=f"{_ESTIMATION}:228",
    formula=_HMAC_FORMULA,
    state_bytes=_hmac_state,
    code_bytes=_hmac_code,
    flops=_hmac_flops,
)
def conv_partial_horizontal_mac(
    *,
    kernel: int = 1,
    conv_size: int | Sequence[int] | None = None,
    kernel_zeroing: bool | None = None,
    workers: int,
    data_path_bytes: int,
    **arguments: Any,
) -> int:
    """Cycles of ConvPartialHorizontalMac.

    `kernel`: kernel elements; `conv_size`: run lengths every worker does per kernel element (the zeroing is then
    left out unless asked for), or `rows` and `row_width`. Others as of `hmac_cycles`.
    """
    if conv_size is None:
        zeroing = True if kernel_zeroing is None else kernel_zeroing
        return whole_number(
            hmac_cycles(
                kernel_elements=kernel,
                kernel_zeroing=zeroing,
                workers=workers,
                data_path_bytes=data_path_bytes,
                **arguments,
            )
        )
    lengths = tuple(conv_size) if isinstance(conv_size, Sequence) else (conv_size,)
    total = sum(lengths) * workers
    return whole_number(
        hmac_cycles(
            kernel_elements=kernel,
            run_lengths=lengths,
            rows=1,
            row_width=total,
            kernel_zeroing=bool(kernel_zeroing),
            workers=workers,
            data_path_bytes=data_path_bytes,
            **arguments,
        )
    )


@codelet(
    "poplin::ConvPartialHorizontalMac1x1",
    kind="supervisor",
    source=f"{_ESTIMATION}:228",
    formula=_HMAC_FORMULA,
    state_bytes=_hmac_state,
    code_bytes=132 + 844,
    flops=_hmac_flops,
)
def conv_partial_horizontal_mac_1x1(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Cycles of ConvPartialHorizontalMac1x1 (half inputs, float partials); arguments as of its general form."""
    return conv_partial_horizontal_mac(one_by_one=True, workers=workers, data_path_bytes=data_path_bytes, **arguments)


def _vmac_state(
    *,
    rows: int,
    kernel_height: int,
    in_groups: int = 1,
    conv_groups: int = 1,
    workers: int,
    **_: Any,
) -> int:
    """Fields 40 B, a pointer per block of in, weights and out, four shorts of worklist per run."""
    return 40 + 4 * conv_groups * (2 * in_groups + 1) + 4 * workers + 8 * max(rows, workers) * kernel_height


def _vmac_code(*, conv_groups_per_group: int = 4, partials_type: str = "float", **_: Any) -> int:
    if partials_type == "float":
        return 684 + 476
    return 684 + 312 + {4: 0, 8: 124, 16: 168}[conv_groups_per_group]


def _vmac_flops(
    *,
    rows: int,
    kernel_height: int,
    kernel_width: int,
    out_elements: int,
    in_groups: int = 1,
    conv_groups: int = 1,
    conv_groups_per_group: int = 4,
    workers: int,
    **_: Any,
) -> int:
    taps = rows * kernel_height * kernel_width
    return 2 * conv_groups * in_groups * conv_groups_per_group * taps + out_elements * (workers - 1)


@codelet(
    "poplin::ConvPartialVerticalMac",
    kind="supervisor",
    source=f"{_ESTIMATION}:371",
    formula="100 (101 float) + G*(zeroing + 32 + inG*(24 + workers*(start + kernel_height*runs*(15|13 + "
    "per_tap*(taps - 1))))"
    " + reduction); zeroing = 4 + ceil(elements/2|4); reduction = 10|9 + (12|19)*ceil(elements/workers)/groups",
    state_bytes=_vmac_state,
    code_bytes=_vmac_code,
    flops=_vmac_flops,
)
def conv_partial_vertical_mac(*, workers: int, **arguments: Any) -> int:
    """Cycles of ConvPartialVerticalMac; arguments as of `vmac_cycles`."""
    return whole_number(vmac_cycles(workers=workers, **arguments))


@codelet(
    "poplin::OuterProduct",
    kind="worker",
    source=f"{_ESTIMATION}:1516",
    formula="25 + chans/chansPerGroup*(11 + width*(6 + (chansPerGroup - 6)/2)) float,"
    " 25 + chans/chansPerGroup*(10 + width*(6 + (chansPerGroup - 12)/4)) half",
    state_bytes=lambda *, chans, chans_per_group, **_: 24 + 4 * (chans // chans_per_group),
    code_bytes=512,
    flops=lambda *, width, chans, **_: width * chans,
    operands=sized(lambda *, width, chans, **_: (width, chans), lambda *, width, chans, **_: (width * chans,)),
)
def outer_product(*, type: str, width: int, chans: int, chans_per_group: int) -> int:
    """Cycles of OuterProduct: `width` inputs times `chans` output channels in groups of `chans_per_group`."""
    return whole_number(outer_product_cycles(type=type, width=width, chans=chans, chans_per_group=chans_per_group))


@codelet(
    "poplin::denseDotProduct",
    kind="worker",
    source=f"{_ESTIMATION}:79",
    formula="7 + size/4 half/float, 10 + size/4 half/half (two outputs), 7 + size/2 float",
    state_bytes=lambda **_: 0,  # an inner routine of the horizontal MAC, not a vertex of its own
    code_bytes=0,
    flops=lambda *, size, **_: 2 * size,
    operands=untold,
)
def dense_dot_product(*, in_type: str, partials_type: str, vector_width: int, size: int, data_path_bytes: int) -> int:
    """Cycles of the dot product inside the horizontal MAC."""
    return whole_number(
        dense_dot_cycles(
            size=size,
            in_type=in_type,
            partials_type=partials_type,
            vector_width=vector_width,
            data_path_bytes=data_path_bytes,
        )
    )
