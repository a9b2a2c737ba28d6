"""The 1x1 convolution vertex of the matrix unit (AMP), and what it shares with the nx1 vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.conv.quarter import amp_1x1_inner_quarter, amp_1x1_quarter
from workbench.engine.vertices.sizes import Sizes, slowest, where, whole_number

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"
WEIGHT_BYTES_PER_UNIT = 32  # a unit's pipeline depth x elements per cycle x element bytes: 16 half or 8 float


def _shares_path_of_half_16(in_type: str, partials_type: str, conv_units: int) -> bool:
    return partials_type == "float" or (in_type == "half" and conv_units == 16)


def weight_load_cycles(
    *,
    conv_units: int,
    bytes_per_unit: int = WEIGHT_BYTES_PER_UNIT,
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


def zero_partials_cycles(
    *, elements: Sizes, groups: Sizes, float_partials: bool, workers: int, data_path_bytes: int
) -> Sizes:
    """Tile cycles to zero `groups` output groups of `elements` partials each.

    One access of the data path per cycle and worker, 5 cycles overhead each (set-up less the state kept between
    calls). Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:166.
    """
    vectors = ceil_div(ceil_div(elements, workers), data_path_bytes // (4 if float_partials else 2))
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
    *,
    positions: Sizes,
    in_type: str,
    partials_type: str,
    conv_units: int,
    zeroing: bool,
    workers: int,
    at_least: bool = False,
) -> Sizes:
    """Tile cycles of one pass of all workers over `positions` output positions, for one weight load; `at_least`: of
    those with the largest share alone, which is a lower bound.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:397.
    """
    if in_type == "quarter":
        return amp_1x1_inner_quarter(positions=positions, zeroing=zeroing, workers=workers)
    table = _one_by_one_worker(in_type, partials_type, conv_units, zeroing)
    saved, _ = _retained(in_type, partials_type, conv_units)

    def worker(count: Sizes) -> Sizes:
        work = where(count == 1, table.one, where(count == 2, table.two, table.more + (count - 3) * table.step))
        work = work + table.zero_fixed + table.zero_step * count
        return where(count == 0, table.none, work) - saved

    if at_least:
        return worker(ceil_div(positions, workers)) * workers
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
    weight_bytes_per_unit: int = WEIGHT_BYTES_PER_UNIT,
    workers: int,
    at_least: bool = False,
) -> Sizes:
    """Tile cycles of one ConvPartial1x1Out vertex; `at_least`: a lower bound of them, from one worker alone.

    `positions`: output positions (batch x field) on the tile; `in_groups`, `out_groups`, `conv_groups`: blocks of
    input channels, output channels and convolution groups. With passes = out_chans_per_group / conv_units and
    load = conv_units * weight bytes / bytes per cycle, every block of output channels loads weights and runs
    all workers once per block of input channels and pass.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:672.
    """
    load = weight_load_cycles(
        conv_units=conv_units, bytes_per_unit=weight_bytes_per_unit, bytes_per_cycle=weight_load_bytes_per_cycle
    )
    if in_type == "quarter":
        groups = {"in_groups": in_groups, "out_groups": out_groups, "conv_groups": conv_groups}
        return amp_1x1_quarter(positions=positions, load=load, workers=workers, **groups)
    arguments: dict[str, Any] = {
        "positions": positions,
        "in_type": in_type,
        "partials_type": partials_type,
        "conv_units": conv_units,
        "workers": workers,
        "at_least": at_least,
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


def pointer_bytes(in_groups: int, out_groups: int, conv_groups: int) -> int:
    """Bytes of the pointer vectors in, weights and out: one word per block."""
    return 4 * conv_groups * (in_groups + in_groups * out_groups + out_groups)


def _out_1x1_state(*, in_groups: int = 1, out_groups: int = 1, conv_groups: int = 1, workers: int, **_: Any) -> int:
    """Four pointers and seven shorts, the pointer vectors, three shorts of worklist per worker."""
    return 32 + pointer_bytes(in_groups, out_groups, conv_groups) + 6 * workers


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
    weight_bytes_per_unit: int = WEIGHT_BYTES_PER_UNIT,
    **_: Any,
) -> int:
    depth = weight_bytes_per_unit // {"float": 4, "quarter": 1}.get(in_type, 2)
    return 2 * conv_groups * in_groups * out_groups * out_chans_per_group * depth * positions


@codelet(
    "poplin::ConvPartial1x1Out",
    kind="supervisor",
    source=f"{_ESTIMATION}:672",
    formula="50 + workers*(kept + kept_in*(inG*G - 1)) + G*[13 + (inG-1)*(15 + outG*(19 + passes*(6 + load + inner)))"
    " + 11 + outG*(18 + passes*(7 + load + inner_zeroing))]; inner = workers*(37|38 + "
    "4*(ceil(positions/workers) - 3) - 7)"
    " for half, 46 + 8*(..) for float; passes = outChansPerGroup/units; load = units*32/bytes per cycle",
    state_bytes=_out_1x1_state,
    code_bytes=_out_1x1_code,
    flops=_out_1x1_flops,
)
def conv_partial_1x1_out(*, workers: int, **arguments: Any) -> int:
    """Cycles of ConvPartial1x1Out; arguments as of `amp_1x1_cycles`."""
    return whole_number(amp_1x1_cycles(workers=workers, **arguments))
