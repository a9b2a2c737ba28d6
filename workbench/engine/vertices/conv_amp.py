"""The matrix-unit (AMP) convolution vertices: 1x1 and nx1, each one arithmetic for sizes and arrays of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from workbench.engine.vertices import codelet
from workbench.engine.vertices.sizes import (
    Sizes,
    ceil_div,
    slowest,
    where,
    worker_row_sums,
)

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"
_WEIGHT_BYTES_PER_UNIT = 32  # a unit's pipeline depth x elements per cycle x element bytes: 16 half or 8 float


def _shares_path_of_half_16(in_type: str, partials_type: str, conv_units: int) -> bool:
    return partials_type == "float" or (in_type == "half" and conv_units == 16)


def weight_load_cycles(
    *,
    conv_units: int,
    bytes_per_unit: int = _WEIGHT_BYTES_PER_UNIT,
    bytes_per_cycle: int = 8,
    filter_height: Sizes = 1,
) -> Sizes:
    """Cycles to load the weights of all units; a filter height of 4 cannot use the 16-byte load.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:558.
    """
    wide = bytes_per_cycle > 8
    halved = bytes_per_cycle // 2 if wide else bytes_per_cycle
    total = conv_units * bytes_per_unit
    return where(filter_height == 4, total // halved, total // bytes_per_cycle)


def zero_partials_cycles(*, elements: Sizes, groups: Sizes, float_partials: bool, workers: int = 6) -> Sizes:
    """Tile cycles to zero `groups` output groups of `elements` partials each.

    One vector of 8 bytes per cycle and worker, 5 cycles overhead each (set-up less the state kept between
    calls). Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:166.
    """
    vectors = ceil_div(ceil_div(elements, workers), 2 if float_partials else 4)
    return (vectors + 5) * workers * groups


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneByOneWorker:
    """Worker cycles for 0, 1, 2 and more positions, `step` for each after the third.

    When zeroing, each worker with work adds `zero_fixed + zero_step * positions`.
    """

    none: int
    one: int
    two: int
    more: int
    step: int
    zero_fixed: int
    zero_step: int


def _one_by_one_worker(in_type: str, partials_type: str, conv_units: int, zeroing: bool) -> _OneByOneWorker:
    zero_step = 8 if in_type == "float" and conv_units == 16 else 4 if partials_type == "float" else 2
    fixed, step = (2, zero_step) if zeroing else (0, 0)
    if in_type == "float":
        return _OneByOneWorker(none=24, one=47, two=46, more=46, step=8, zero_fixed=fixed, zero_step=step)
    if _shares_path_of_half_16(in_type, partials_type, conv_units):
        branch = 1 if zeroing else 2  # this path accumulates or not by its first instruction, it has no zeroing loop
        return _OneByOneWorker(
            none=20 + branch, one=31 + branch, two=40 + branch, more=36 + branch, step=4, zero_fixed=0, zero_step=0
        )
    return _OneByOneWorker(none=24, one=39, two=40, more=41, step=4, zero_fixed=fixed, zero_step=step)


def _retained(in_type: str, partials_type: str, conv_units: int) -> tuple[int, int]:
    """Worker cycles saved by state kept between calls: in all, and the part kept per input group."""
    return (7, 3) if in_type == "half" and (partials_type == "float" or conv_units == 16) else (0, 0)


def amp_1x1_inner_cycles(
    *, positions: Sizes, in_type: str, partials_type: str, conv_units: int, zeroing: bool, workers: int = 6
) -> Sizes:
    """Tile cycles of one pass of all workers over `positions` output positions, for one weight load.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:397.
    """
    table = _one_by_one_worker(in_type, partials_type, conv_units, zeroing)
    saved, _ = _retained(in_type, partials_type, conv_units)

    def worker(count: Sizes) -> Sizes:
        work = where(count == 1, table.one, where(count == 2, table.two, table.more + (count - 3) * table.step))
        work = work + table.zero_fixed + table.zero_step * count
        return where(count == 0, table.none, work) - saved

    # Shares differ by at most one position, so two worker kinds cover the extremes.
    share = positions // workers
    extremes = [worker(share), worker(share + where(positions % workers == 0, 0, 1))]
    return slowest([*extremes, *extremes[:1] * (workers - 2)], workers, fastest_penalty=14)


def amp_1x1_cycles(
    *,
    positions: Sizes,
    in_groups: Sizes = 1,
    out_groups: Sizes = 1,
    conv_groups: Sizes = 1,
    out_chans_per_group: Sizes = 16,
    in_type: str = "half",
    partials_type: str = "half",
    conv_units: int = 16,
    weight_load_bytes_per_cycle: int = 8,
    weight_bytes_per_unit: int = _WEIGHT_BYTES_PER_UNIT,
    workers: int = 6,
) -> Sizes:
    """Tile cycles of one ConvPartial1x1Out vertex.

    `positions`: output positions (batch x field) on the tile; `in_groups`, `out_groups`, `conv_groups`: blocks of
    input channels, output channels and convolution groups. With passes = out_chans_per_group / conv_units and
    load = conv_units * weight bytes / bytes per cycle, every block of output channels loads weights and runs
    all workers once per block of input channels and pass.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:672.
    """
    load = weight_load_cycles(
        conv_units=conv_units, bytes_per_unit=weight_bytes_per_unit, bytes_per_cycle=weight_load_bytes_per_cycle
    )
    arguments: dict[str, Any] = {
        "positions": positions,
        "in_type": in_type,
        "partials_type": partials_type,
        "conv_units": conv_units,
        "workers": workers,
    }
    first = amp_1x1_inner_cycles(zeroing=True, **arguments)
    later = amp_1x1_inner_cycles(zeroing=False, **arguments)
    passes = ceil_div(out_chans_per_group, conv_units)
    saved, saved_per_in_group = _retained(in_type, partials_type, conv_units)
    shared = int(_shares_path_of_half_16(in_type, partials_type, conv_units))
    refill = workers * (saved + saved_per_in_group * (in_groups * conv_groups - 1))
    later_groups = (in_groups - 1) * (16 - shared + out_groups * (19 + passes * (6 + load + later)))
    first_group = 11 + out_groups * (19 - shared + passes * (7 + load + first))
    return 50 + refill + conv_groups * (12 + shared + later_groups + first_group)


def nx1_worker_runs(length: Sizes, *, in_type: str, partials_type: str, conv_units: int) -> Sizes:
    """Worker cycles for one run of `length` positions of a row.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:759.
    """
    extra_stride = int(in_type == "half" and (partials_type, conv_units) in (("half", 16), ("float", 8)))
    if in_type == "float":
        work = where(length == 1, 33, where(length == 2, 44, 45 + (length - 3) * 8))
    else:
        work = where(length == 1, 29, where(length == 2, 33 + extra_stride, 34 + (length - 3) * 4))
    return 3 + where(length == 0, 17, work) - 9


def nx1_cycles(
    *,
    positions: Sizes = 0,
    row_width: Sizes = 1,
    kernel_outer: Sizes = 1,
    kernel_inner: Sizes = 1,
    filter_height: Sizes = 1,
    in_groups: Sizes = 1,
    out_groups: Sizes = 1,
    conv_groups: Sizes = 1,
    out_chans_per_group: Sizes = 16,
    in_type: str = "half",
    partials_type: str = "half",
    conv_units: int = 16,
    weight_load_bytes_per_cycle: int = 8,
    weight_bytes_per_unit: int = _WEIGHT_BYTES_PER_UNIT,
    workers: int = 6,
    kernel_zeroing: bool = True,
    zero_as_float: bool | None = None,
    run_lengths: Sequence[Sizes] | None = None,
) -> Sizes:
    """Tile cycles of one ConvPartialnx1 vertex.

    `positions`: active output positions (batch x field, after dividing by the output stride), in rows of
    `row_width`, shared equally by the workers; or `run_lengths`: what every worker does per kernel position.
    `kernel_outer` = ceil(kernel height / filter_height), `kernel_inner` = the other kernel positions.
    `kernel_zeroing` adds the zeroing of the partials (`zero_as_float=True` counts 4-byte partials whatever their
    type, as PopLibs' planner does). Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:694, :955.
    """
    float_partials = partials_type == "float"
    start = 17 if float_partials else 18

    def run(length: Sizes) -> Sizes:
        return nx1_worker_runs(length, in_type=in_type, partials_type=partials_type, conv_units=conv_units)

    if run_lengths is None:
        busy = worker_row_sums(positions, row_width, workers, run)
    else:
        busy = [sum(run(length) for length in run_lengths)] * workers
    calls = slowest([start + cycles for cycles in busy], workers, fastest_penalty=9)
    fixed_load = where(
        filter_height == 1, 15, where(filter_height == 2, 46, where(filter_height == 4, 60, 20 * filter_height))
    )
    load = (
        fixed_load
        + 3
        + weight_load_cycles(
            conv_units=conv_units,
            bytes_per_unit=weight_bytes_per_unit,
            bytes_per_cycle=weight_load_bytes_per_cycle,
            filter_height=filter_height,
        )
    )
    passes = out_chans_per_group // conv_units
    inner = kernel_outer * (14 + kernel_inner * (12 + passes * (load + calls)))
    refill = workers * (9 + (9 if float_partials else 10))
    zero_loop = conv_groups * (out_groups * 17 + (out_groups - 1) * 6 + 1) + (conv_groups - 1) * 6 + 1
    cycles = 109 + refill + zero_loop + conv_groups * (16 + in_groups * (14 + out_groups * (14 + inner)))
    if not kernel_zeroing:
        return cycles
    return cycles + zero_partials_cycles(
        elements=positions * out_chans_per_group,
        groups=out_groups * conv_groups,
        float_partials=float_partials if zero_as_float is None else zero_as_float,
        workers=workers,
    )


def _pointers(in_groups: int, out_groups: int, conv_groups: int) -> int:
    """Bytes of the pointer vectors in, weights and out: one word per block."""
    return 4 * conv_groups * (in_groups + in_groups * out_groups + out_groups)


def _out_1x1_state(*, in_groups: int = 1, out_groups: int = 1, conv_groups: int = 1, workers: int = 6, **_: Any) -> int:
    """Four pointers and seven shorts, the pointer vectors, three shorts of worklist per worker."""
    return 32 + _pointers(in_groups, out_groups, conv_groups) + 6 * workers


def _out_1x1_code(*, in_type: str = "half", partials_type: str = "half", conv_units: int = 16, **_: Any) -> int:
    worker = {("float", 8): 512, ("float", 16): 680, ("half", 8): 372}.get((in_type, conv_units), 668)
    return 928 + (668 if in_type == "half" and partials_type == "float" else worker)


def _out_1x1_flops(
    *,
    positions: int,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    out_chans_per_group: int = 16,
    in_type: str = "half",
    weight_bytes_per_unit: int = _WEIGHT_BYTES_PER_UNIT,
    **_: Any,
) -> int:
    depth = weight_bytes_per_unit // (4 if in_type == "float" else 2)
    return 2 * conv_groups * in_groups * out_groups * out_chans_per_group * depth * positions


@codelet(
    "poplin::ConvPartial1x1Out",
    kind="supervisor",
    source=f"{_ESTIMATION}:672",
    formula="50 + 6*(kept + kept_in*(inG*G - 1)) + G*[13 + (inG-1)*(15 + outG*(19 + passes*(6 + load + inner)))"
    " + 11 + outG*(18 + passes*(7 + load + inner_zeroing))]; inner = 6*(37|38 + 4*(ceil(positions/6) - 3) - 7)"
    " for half, 46 + 8*(..) for float; passes = outChansPerGroup/units; load = units*32/bytes per cycle",
    state_bytes=_out_1x1_state,
    code_bytes=_out_1x1_code,
    flops=_out_1x1_flops,
)
def conv_partial_1x1_out(**arguments: Any) -> int:
    """Cycles of ConvPartial1x1Out; arguments as of `amp_1x1_cycles`."""
    return int(amp_1x1_cycles(**arguments))


def _nx1_kernel(kernel: Sequence[int], filter_height: int) -> dict[str, Any]:
    return {"kernel_outer": ceil_div(kernel[0], filter_height), "kernel_inner": prod(kernel[1:])}


def _runs(
    worklist_elements: int | Sequence[int] | None, positions: int, row_width: int | None, workers: int
) -> dict[str, Any]:
    """Either the runs every worker does, or the positions with their rows."""
    if worklist_elements is None:
        return {"positions": positions, "row_width": row_width or max(positions, 1)}
    lengths = (worklist_elements,) if isinstance(worklist_elements, int) else tuple(worklist_elements)
    return {"run_lengths": lengths, "positions": sum(lengths) * workers}


def _nx1_run_count(
    worklist_elements: int | Sequence[int] | None, positions: int, row_width: int | None, workers: int
) -> int:
    if worklist_elements is not None:
        return workers * (1 if isinstance(worklist_elements, int) else len(worklist_elements))
    width = row_width or max(positions, 1)
    return int(sum(worker_row_sums(positions, width, workers, lambda length: 1)))


def _nx1_state(
    *,
    kernel: Sequence[int],
    filter_height: int = 1,
    worklist_elements: int | Sequence[int] | None = None,
    positions: int = 0,
    row_width: int | None = None,
    workers: int = 6,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    **_: Any,
) -> int:
    """Fields 48 B (strides, zeros, three vector pointers, list, nine shorts), pointers, lists per kernel position."""
    steps: int = prod(_nx1_kernel(kernel, filter_height).values())
    runs: int = _nx1_run_count(worklist_elements, positions, row_width, workers)
    return 48 + _pointers(in_groups, out_groups, conv_groups) + steps * (4 * workers + 6 * runs)


def _nx1_code(*, in_type: str = "half", partials_type: str = "half", conv_units: int = 16, **_: Any) -> int:
    worker = {("float", 8): 656, ("float", 16): 864, ("half", 8): 468}.get((in_type, conv_units), 572)
    return 2332 + 84 + (572 if in_type == "half" and partials_type == "float" else worker)


def _nx1_flops(
    *,
    kernel: Sequence[int],
    chans_per_group: int = 16,
    in_chans_per_group: int | None = None,
    worklist_elements: int | Sequence[int] | None = None,
    positions: int = 0,
    row_width: int | None = None,
    workers: int = 6,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    **_: Any,
) -> int:
    total = _runs(worklist_elements, positions, row_width, workers)["positions"] * prod(kernel)
    in_chans = chans_per_group if in_chans_per_group is None else in_chans_per_group
    return int(2 * conv_groups * in_groups * out_groups * in_chans * chans_per_group * total)


@codelet(
    "poplin::ConvPartialnx1",
    kind="supervisor",
    source=f"{_ESTIMATION}:694",
    formula="163 + 6*kept + zeroing + 17 per out group + G*(16 + inG*(14 + outG*(14 + kernel_outer*(14 + kernel_inner*"
    "(12 + passes*(load + 18|49|63 for filter height 1|2|4 + calls)))))); calls = max over workers of"
    " 6*(17|18 + sum of runs (28 + 4*(n-3) half, 39 + 8*(n-3) float))",
    state_bytes=_nx1_state,
    code_bytes=_nx1_code,
    flops=_nx1_flops,
)
def conv_partial_nx1(
    *,
    kernel: Sequence[int],
    filter_height: int = 1,
    chans_per_group: int = 16,
    in_chans_per_group: int | None = None,
    worklist_elements: int | Sequence[int] | None = None,
    positions: int = 0,
    row_width: int | None = None,
    workers: int = 6,
    in_groups: int = 1,
    **arguments: Any,
) -> int:
    """Cycles of ConvPartialnx1.

    `kernel`: kernel shape on the tile; `chans_per_group`: output channels of a block (`in_chans_per_group`: input
    channels, where they differ); `worklist_elements`: the run lengths every worker does at each kernel position,
    or `positions` in rows of `row_width`. Others as of `nx1_cycles`.
    """
    split = _runs(worklist_elements, positions, row_width, workers)
    if in_groups * (chans_per_group if in_chans_per_group is None else in_chans_per_group) == 0:
        return 109 + int(
            zero_partials_cycles(
                elements=split["positions"] * chans_per_group,
                groups=arguments.get("out_groups", 1) * arguments.get("conv_groups", 1),
                float_partials=arguments.get("partials_type", "half") == "float",
                workers=workers,
            )
        )
    return int(
        nx1_cycles(
            **split,
            **_nx1_kernel(kernel, filter_height),
            filter_height=filter_height,
            out_chans_per_group=chans_per_group,
            workers=workers,
            in_groups=in_groups,
            **arguments,
        )
    )
