"""The convolution vertices of 8-bit floats: the matrix unit's 1x1 form and nx1 runs, and the 1x4 window (SLIC).

They are compiled where those of halves are assembly, so nothing is kept between calls and every loop costs each
worker. `load` are the cycles of loading all units' weights once. Sizes may be numpy arrays.
"""

from __future__ import annotations

from workbench.engine.vertices.sizes import Sizes, larger, slowest, where, worker_row_sums

_CORE = 4  # cycles of one position of all 32 inputs
SLIC_LOAD_CYCLES = 32 + 6


def _run_cycles(length: Sizes, saved: int = 0) -> Sizes:
    """Worker cycles of one run of positions, `saved` of them where the first output needs no reading."""
    some = where(length == 1, 18, where(length == 2, 23, 27 + (length - 3) * _CORE)) - saved
    return where(length == 0, 4, some)


def amp_1x1_inner_quarter(*, positions: Sizes, zeroing: bool, workers: int) -> Sizes:
    """Tile cycles of one pass of all workers. Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:493."""

    def worker(count: Sizes) -> Sizes:
        return 17 + _run_cycles(count, 5 if zeroing else 0)

    share = positions // workers
    extremes = [worker(share), worker(share + where(positions % workers == 0, 0, 1))]
    return slowest([*extremes, *extremes[:1] * (workers - 2)], workers, fastest_penalty=14)


def amp_1x1_quarter(
    *, positions: Sizes, in_groups: Sizes, out_groups: Sizes, conv_groups: Sizes, load: Sizes, workers: int
) -> Sizes:
    """Tile cycles of ConvPartial1x1Out; the channels of a group make no passes.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:617.
    """
    first = amp_1x1_inner_quarter(positions=positions, zeroing=True, workers=workers)
    later = amp_1x1_inner_quarter(positions=positions, zeroing=False, workers=workers)
    first_group = 20 * workers + 11 + load + first
    later_groups = (in_groups - 1) * (17 * workers + 6 + load + later)
    return 46 + conv_groups * (2 * workers + 9 + out_groups * (6 * workers + 10 + first_group + later_groups))


def nx1_run_quarter(length: Sizes) -> Sizes:
    """Worker cycles of one run of `length` positions of a row.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:802.
    """
    return 16 + _run_cycles(length)


def _slic_row_cycles(length: Sizes, stride: int, zeroing: bool) -> Sizes:
    """Worker cycles of one pass over a run of `length` outputs."""
    if stride == 2:
        return where(length < 3, 6 + where(length == 1, 3, 6), 13 + 2 * (length - 3))
    if zeroing:
        short = 8 + where(length == 1, 3, where(length == 2, 5, where(length == 3, 9, 10)))
        return where(length < 5, short, 14 + (length - 5))
    short = 2 + where(length == 1, 8, where(length == 2, 10, 13))
    return 18 + where(length < 5, short, 12 + (length - 5))


def slic_inner_quarter(*, positions: Sizes, row_width: Sizes, zeroing: bool, stride: int, workers: int) -> Sizes:
    """Tile cycles of all workers for one block of groups and one window, whose inputs are passed over twice.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1366.
    """
    busiest: Sizes = 0
    sums = worker_row_sums(positions, row_width, workers, lambda n: 24 + 2 * _slic_row_cycles(n, stride, zeroing))
    for cycles in sums:
        busiest = larger(busiest, 20 + cycles)
    return busiest * workers


def slic_quarter(*, first: Sizes, later: Sizes, conv_groups: Sizes, sub_kernels: Sizes, workers: int) -> Sizes:
    """Tile cycles of ConvPartial1xNSLIC whose first window takes `first` and each further one `later`.

    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1209.
    """
    one = 6 * workers + SLIC_LOAD_CYCLES
    zeroing_window = one + 6 * workers + 12 + first
    other_windows = (sub_kernels - 1) * (one + 5 * workers + 8 + later)
    return 43 + conv_groups * (13 * workers + 15 + zeroing_window + other_windows)
