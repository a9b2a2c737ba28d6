"""popops vertices that read or lessen one element per row of a matrix, for losses of integer labels."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p

_TEXT = "27 + 8 a row (12 of halves, which are written by read and modify)"


def _cycles(dtype: str, rows: int) -> int:
    p.type_bytes(dtype)
    return 27 + (12 if dtype == "half" else 8) * rows


def _interval_codelet(name: str, line: int, pointers: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula=_TEXT,
        state_bytes=lambda *, row_count, **_: pointers * p.POINTER + p.SPAN + 4 * row_count + 16,
        code_bytes=200,
    )
    def interval_cycles(*, type: str, row_count: int) -> int:
        """Worker cycles over `row_count` rows of one interval."""
        return _cycles(type, row_count)


def _intervals_codelet(name: str, line: int, pointers: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula=f"{_TEXT}, of the rows of all intervals for each interval, as published",
        state_bytes=lambda *, params, row_counts, **_: p.rows_state(
            params, *[p.POINTER] * pointers, scalars=16 * len(row_counts) + 4 * p.total(row_counts)
        ),
        code_bytes=240,
    )
    def intervals_cycles(*, type: str, params: int, row_counts: Sequence[int]) -> int:
        """Worker cycles over `params` intervals of `row_counts` rows."""
        return _cycles(type, params * p.total(row_counts))


def _columns_codelet(name: str, line: int, pointers: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula=f"{_TEXT}, of regions * all widths * all heights, as published",
        state_bytes=lambda *, params, region_widths, region_heights, **_: p.rows_state(
            params, *[p.POINTER] * pointers, scalars=16 + 4 * (2 * len(region_widths) + len(region_heights))
        ),
        code_bytes=280,
    )
    def columns_cycles(*, type: str, params: int, region_widths: Sequence[int], region_heights: Sequence[int]) -> int:
        """Worker cycles over `params` regions of columns."""
        return _cycles(type, params * p.total(region_widths) * p.total(region_heights))


_interval_codelet("popops::UpdateIntervalDEC", 2317, 2)
_interval_codelet("popops::SelectFromInterval", 2359, 3)
_intervals_codelet("popops::UpdateIntervalsDEC", 2327, 2)
_intervals_codelet("popops::SelectFromIntervals", 2369, 3)
_columns_codelet("popops::UpdateColumnsDEC", 2341, 2)
_columns_codelet("popops::SelectFromRowsInColumns", 2382, 3)
