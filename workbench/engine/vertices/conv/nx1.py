"""The nx1 convolution vertex of the matrix unit (AMP): any kernel, partials added in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.conv.amp import (
    WEIGHT_BYTES_PER_UNIT,
    pointer_bytes,
    weight_load_cycles,
    zero_partials_cycles,
)
from workbench.engine.vertices.conv.quarter import nx1_run_quarter
from workbench.engine.vertices.sizes import Sizes, least_row_sum, slowest, where, whole_number, worker_row_sums

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Loops:
    """How often the vertex goes round each loop; `load` are the cycles of loading all units' weights once."""

    kernel_outer: Sizes
    kernel_inner: Sizes
    passes: Sizes
    in_groups: Sizes
    out_groups: Sizes
    conv_groups: Sizes
    load: Sizes


def nx1_worker_runs(length: Sizes, *, in_type: str, partials_type: str, conv_units: int) -> Sizes:
    """Worker cycles for one run of `length` positions of a row.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:759.
    """
    if in_type == "quarter":
        return nx1_run_quarter(length)
    extra_stride = int(in_type == "half" and (partials_type, conv_units) in (("half", 16), ("float", 8)))
    if in_type == "float":
        work = where(length == 1, 33, where(length == 2, 44, 45 + (length - 3) * 8))
    else:
        work = where(length == 1, 29, where(length == 2, 33 + extra_stride, 34 + (length - 3) * 4))
    return 3 + where(length == 0, 17, work) - 9


def _nx1_run_sums(
    positions: Sizes,
    row_width: Sizes,
    run_lengths: Sequence[Sizes] | None,
    workers: int,
    at_least: bool,
    *,
    in_type: str,
    **kinds: Any,
) -> list[Sizes]:
    """Per worker, the cycles of its runs in one call: of its share of the rows, or of the same runs as the others.

    `at_least`: of one worker only, who takes no longer than the slowest.
    """

    def run(length: Sizes) -> Sizes:
        return nx1_worker_runs(length, in_type=in_type, **kinds)

    if run_lengths is None:
        if at_least and in_type != "quarter":  # whose runs have no line below them
            return [least_row_sum(positions, row_width, workers, run)]
        return worker_row_sums(positions, row_width, workers, run)
    return [sum(run(length) for length in run_lengths)] * workers


def _nx1_calls(run_sums: Sequence[Sizes], float_partials: bool, workers: int) -> Sizes:
    """Tile cycles of one call of all workers."""
    start = 17 if float_partials else 18
    return slowest([start + cycles for cycles in run_sums], workers, fastest_penalty=9)


def _nx1_supervisor_load(filter_height: Sizes) -> Sizes:
    """Supervisor cycles around one weight load, by how many kernel rows the unit accumulates."""
    by_height = where(filter_height == 2, 46, where(filter_height == 4, 60, 20 * filter_height))
    return 3 + where(filter_height == 1, 15, by_height)


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
    weight_bytes_per_unit: int = WEIGHT_BYTES_PER_UNIT,
    workers: int,
    data_path_bytes: int,
    kernel_zeroing: bool = True,
    zero_as_float: bool | None = None,
    run_lengths: Sequence[Sizes] | None = None,
    at_least: bool = False,
) -> Sizes:
    """Tile cycles of one ConvPartialnx1 vertex; `at_least`: a lower bound of them, from one worker alone.

    `positions`: active output positions (batch x field, after dividing by the output stride), in rows of
    `row_width`, shared equally by the workers; or `run_lengths`: what every worker does per kernel position.
    `kernel_outer` = ceil(kernel height / filter_height), `kernel_inner` = the other kernel positions.
    `kernel_zeroing` adds the zeroing of the partials (`zero_as_float=True` counts 4-byte partials whatever their
    type, as PopLibs' planner does). Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:694, :955.
    """
    float_partials = partials_type == "float"
    kinds: dict[str, Any] = {"in_type": in_type, "partials_type": partials_type, "conv_units": conv_units}
    run_sums = _nx1_run_sums(positions, row_width, run_lengths, workers, at_least, **kinds)
    loops = _Loops(
        kernel_outer=kernel_outer,
        kernel_inner=kernel_inner,
        passes=out_chans_per_group // conv_units,
        in_groups=in_groups,
        out_groups=out_groups,
        conv_groups=conv_groups,
        load=weight_load_cycles(
            conv_units=conv_units,
            bytes_per_unit=weight_bytes_per_unit,
            bytes_per_cycle=weight_load_bytes_per_cycle,
            filter_height=filter_height,
        ),
    )
    halves = (loops, run_sums, filter_height, float_partials, workers)
    cycles = _nx1_quarter(loops, run_sums, workers) if in_type == "quarter" else _nx1_halves(*halves)
    if not kernel_zeroing:
        return cycles
    return cycles + zero_partials_cycles(
        elements=positions * out_chans_per_group,
        groups=out_groups * conv_groups,
        float_partials=float_partials if zero_as_float is None else zero_as_float,
        workers=workers,
        data_path_bytes=data_path_bytes,
    )


def _nx1_halves(
    loops: _Loops, run_sums: Sequence[Sizes], filter_height: Sizes, float_partials: bool, workers: int
) -> Sizes:
    """Tile cycles for halves and floats without the zeroing itself."""
    calls = _nx1_calls(run_sums, float_partials, workers)
    kept = workers * (9 + (9 if float_partials else 10))
    loads = _nx1_supervisor_load(filter_height) + loops.load
    inner = loops.kernel_outer * (14 + loops.kernel_inner * (12 + loops.passes * (loads + calls)))
    groups = loops.conv_groups
    zero_loop = groups * (loops.out_groups * 17 + (loops.out_groups - 1) * 6 + 1) + (groups - 1) * 6 + 1
    return kept + 109 + zero_loop + groups * (16 + loops.in_groups * (14 + loops.out_groups * (14 + inner)))


def _nx1_quarter(loops: _Loops, run_sums: Sequence[Sizes], workers: int) -> Sizes:
    """Tile cycles for 8-bit floats without the zeroing.

    As published, weights load twice for each of the outer kernel positions, whatever the inner ones and passes.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:715, :1006.
    """
    calls = _nx1_calls(run_sums, float_partials=False, workers=workers)
    first, later = 15 * workers + 13, 13 * workers + 8
    around = loops.kernel_outer * (5 * workers + 3 + first + (loops.kernel_inner - 1) * later + 2 * loops.load)
    inner = around + calls * loops.passes * loops.kernel_outer * loops.kernel_inner
    per_group = 8 * workers + 10 + loops.in_groups * (8 * workers + 13 + inner)
    return 83 + loops.conv_groups * (5 * workers + 7 + loops.out_groups * per_group)


def _nx1_kernel(kernel: Sequence[int], filter_height: int) -> dict[str, Any]:
    return {"kernel_outer": ceil_div(kernel[0], filter_height), "kernel_inner": prod(kernel[1:])}


def _runs(
    worklist_elements: int | Sequence[int] | None, positions: int, row_width: int | None, workers: int
) -> dict[str, Any]:
    """Either the runs every worker does, or the positions with their rows."""
    if worklist_elements is None:
        return {"positions": positions, "row_width": row_width or max(positions, 1)}
    lengths = tuple(worklist_elements) if isinstance(worklist_elements, Sequence) else (worklist_elements,)
    return {"run_lengths": lengths, "positions": sum(lengths) * workers}


def _nx1_run_count(
    worklist_elements: int | Sequence[int] | None, positions: int, row_width: int | None, workers: int
) -> int:
    if worklist_elements is not None:
        return workers * (len(worklist_elements) if isinstance(worklist_elements, Sequence) else 1)
    width = row_width or max(positions, 1)
    return whole_number(sum(worker_row_sums(positions, width, workers, lambda length: 1)))


def _nx1_state(
    *,
    kernel: Sequence[int],
    filter_height: int = 1,
    worklist_elements: int | Sequence[int] | None = None,
    positions: int = 0,
    row_width: int | None = None,
    workers: int,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    **_: Any,
) -> int:
    """Fields 48 B (strides, zeros, three vector pointers, list, nine shorts), pointers, lists per kernel position."""
    steps: int = prod(_nx1_kernel(kernel, filter_height).values())
    runs: int = _nx1_run_count(worklist_elements, positions, row_width, workers)
    return 48 + pointer_bytes(in_groups, out_groups, conv_groups) + steps * (4 * workers + 6 * runs)


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
    workers: int,
    in_groups: int = 1,
    out_groups: int = 1,
    conv_groups: int = 1,
    **_: Any,
) -> int:
    total = _runs(worklist_elements, positions, row_width, workers)["positions"] * prod(kernel)
    in_chans = chans_per_group if in_chans_per_group is None else in_chans_per_group
    return whole_number(2 * conv_groups * in_groups * out_groups * in_chans * chans_per_group * total)


@codelet(
    "poplin::ConvPartialnx1",
    kind="supervisor",
    source=f"{_ESTIMATION}:694",
    formula="109 + workers*(9 + kept) + zeroing + 17 per out group + G*(16 + inG*(14 + outG*(14 + "
    "kernel_outer*(14 + kernel_inner*"
    "(12 + passes*(load + 18|49|63 for filter height 1|2|4 + calls)))))); calls = max over workers of"
    " workers*(17|18 + sum of runs (28 + 4*(n-3) half, 39 + 8*(n-3) float))",
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
    workers: int,
    data_path_bytes: int,
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
        return 109 + whole_number(
            zero_partials_cycles(
                elements=split["positions"] * chans_per_group,
                groups=arguments.get("out_groups", 1) * arguments.get("conv_groups", 1),
                float_partials=arguments.get("partials_type", "half") == "float",
                workers=workers,
                data_path_bytes=data_path_bytes,
            )
        )
    return whole_number(
        nx1_cycles(
            **split,
            **_nx1_kernel(kernel, filter_height),
            filter_height=filter_height,
            out_chans_per_group=chans_per_group,
            workers=workers,
            data_path_bytes=data_path_bytes,
            in_groups=in_groups,
            **arguments,
        )
    )
