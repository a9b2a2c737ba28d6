"""The ways to cut an axis, and the table of all cuts of the axes of one role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.base.arrays import IntArray, frozen

MOST_PARTS = 2048  # more than the tiles of any IPU, and the same for all, so that more tiles only add candidates
COARSE_RATIO = 1.4  # where several axes of one role multiply, parts whose size differs by less are not both tried


@lru_cache(maxsize=4096)
def parts_of_axis(size: int, grain: int, ratio: float = 1.0) -> tuple[int, ...]:
    """Numbers of parts worth trying: the least for each size of the largest part, sizes at least `ratio` apart.

    PopLibs tries them all: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:3276-3409 (ceildivConstrainDivisor). One part and,
    up to 2048, a part per grain are always among them. Nothing here depends on the target.
    """
    grains = -(-size // grain)
    chosen = [1]
    share = grains
    for parts in range(2, min(grains, MOST_PARTS) + 1):
        new = -(-grains // parts)
        if new < share and (share >= ratio * new or new == 1):
            chosen.append(parts)
            share = new
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Every combination of parts of some axes, one per row.

    `parts` and `shares` (elements of the largest part) are int64[rows, axes]; `product` the parts multiplied.
    """

    axes: tuple[str, ...]
    parts: IntArray
    shares: IntArray
    product: IntArray

    def __len__(self) -> int:
        return len(self.product)

    def share(self, axis: str) -> IntArray:
        """Elements of the largest part of one axis, per row."""
        return self.shares[:, self.axes.index(axis)]

    def elements(self) -> IntArray:
        """Elements of all axes of the largest part, per row."""
        elements: IntArray = np.prod(self.shares, axis=1, dtype=np.int64)
        return elements


@lru_cache(maxsize=4096)
def table(axes: tuple[str, ...], sizes: tuple[int, ...], grains: tuple[int, ...]) -> Table:
    """All combinations of parts that stay within 2048 together."""
    ratio = 1.0 if len(axes) < 2 else COARSE_RATIO
    rows = np.zeros((1, 0), np.int64)
    for size, grain in zip(sizes, grains, strict=True):
        choices = np.asarray(parts_of_axis(size, grain, ratio), np.int64)
        rows = np.concatenate([np.repeat(rows, len(choices), 0), np.tile(choices, len(rows))[:, None]], axis=1)
        rows = rows[np.prod(rows, axis=1) <= MOST_PARTS]
    return Table(
        axes=axes,
        parts=frozen(rows),
        shares=frozen(shares_of(rows, sizes, grains)),
        product=frozen(np.prod(rows, axis=1, dtype=np.int64)),
    )


def shares_of(rows: IntArray, sizes: Sequence[int], grains: Sequence[int]) -> IntArray:
    """Elements of the largest part for each row of parts."""
    if not len(sizes):
        return np.ones((len(rows), 0), np.int64)
    whole = np.asarray([-(-size // grain) for size, grain in zip(sizes, grains, strict=True)])
    shares: IntArray = np.minimum(-(-whole // rows) * np.asarray(grains), np.asarray(sizes))
    return shares
