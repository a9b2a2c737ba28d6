"""Problems searched before, and how each was cut: a search of one that is alike has a cut to begin with.

What that costs is at least what the cheapest costs, so cuts that cannot cost as little need not be looked at. Layers at
another batch size are cut much as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any

import numpy as np

from workbench.engine.planner.problem import ConvProblem
from workbench.engine.planner.variant import Table, Variant, tables_of

FARTHEST = 1.0  # doublings of sizes, all axes together, up to which problems are alike
MOST = 256  # that are kept of one kind of problem
MOST_KINDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a problem was cut: by which method in which layout, into how many parts of each axis, in how many steps."""

    method: Any
    swapped: bool
    expanded: tuple[int, ...]
    parts: dict[str, int]
    serial_in: int
    serial_out: int

    @classmethod
    def of(cls, variant: Variant, rows: Sequence[int], serial_in: int, serial_out: int) -> Cut:
        """That of rows of a variant's tables."""
        return cls(
            method=variant.method,
            swapped=variant.swapped,
            expanded=variant.expanded,
            parts={
                axis: int(table.parts[row, column])
                for table, row in zip(tables_of(variant), rows, strict=True)
                for column, axis in enumerate(table.axes)
            },
            serial_in=serial_in,
            serial_out=serial_out,
        )

    def is_of(self, variant: Variant) -> bool:
        """Whether a variant computes so."""
        return (self.method, self.swapped, self.expanded) == (variant.method, variant.swapped, variant.expanded)

    def rows(self, variant: Variant) -> tuple[int, ...]:
        """Rows of a variant's tables with parts nearest to these, of each role no more than there were."""
        tables = tables_of(variant)
        return tuple(_nearest_row(table, [self.parts[axis] for axis in table.axes]) for table in tables)


def _nearest_row(table: Table, parts: Sequence[int]) -> int:
    if len(table) == 1:
        return 0
    within = np.flatnonzero(table.product <= prod(parts))
    return int(within[np.abs(np.log2(table.parts[within] / np.asarray(parts))).sum(axis=1).argmin()])


_KNOWN: dict[tuple[Any, ...], dict[tuple[float, ...], Cut]] = {}


def _kind_of(problem: ConvProblem, rest: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """What must be the same of problems that are alike, and the sizes that may differ, as powers of two."""
    sizes = problem.sizes()
    field = tuple((axis.stride, axis.in_dilation, axis.kernel_dilation) for axis in problem.field)
    types = (problem.kind, problem.direction, problem.in_type, problem.partials_type, problem.out_type)
    return (*types, field, tuple(sizes), *rest), tuple(log2(size) for size in sizes.values())


def note_cut(problem: ConvProblem, rest: Sequence[Any], cut: Cut) -> None:
    """Keep how a problem was cut, on a target and with settings as the `rest` says."""
    kind, sizes = _kind_of(problem, rest)
    known = _KNOWN.get(kind)
    if known is None:
        if len(_KNOWN) >= MOST_KINDS:
            _KNOWN.clear()
        known = _KNOWN.setdefault(kind, {})
    if len(known) >= MOST:
        known.clear()
    known[sizes] = cut


def cut_of_one_alike(problem: ConvProblem, rest: Sequence[Any]) -> Cut | None:
    """How the problem that is most alike was cut, None where none is."""
    kind, sizes = _kind_of(problem, rest)
    nearest, least = None, FARTHEST
    for others, cut in list(_KNOWN.get(kind, {}).items()):
        away = sum(abs(one - other) for one, other in zip(sizes, others, strict=True))
        if away <= least:
            nearest, least = cut, away
    return nearest
