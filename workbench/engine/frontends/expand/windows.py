"""Windows of an operand at known starts: which elements a gather reads, or a scatter writes, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from jax.lax import GatherScatterMode

from workbench.base.arrays import IntArray

Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenSteps:
    """Positions first, first + step, …, `count` of them, along one axis."""

    first: int
    step: int
    count: int

    @staticmethod
    def of(numbers: IntArray) -> EvenSteps | None:
        """The span of these positions, None if they are not evenly apart or do not move."""
        steps = np.diff(numbers)
        if len(steps) and (steps[0] == 0 or np.any(steps != steps[0])):
            return None
        return EvenSteps(first=int(numbers[0]), step=int(steps[0]) if len(steps) else 1, count=len(numbers))

    @property
    def last(self) -> int:
        """The last position."""
        return self.first + (self.count - 1) * self.step

    def rising(self) -> EvenSteps:
        """The same positions, the smallest first."""
        return self if self.step > 0 else EvenSteps(first=self.last, step=-self.step, count=self.count)

    def numbers(self) -> IntArray:
        """The positions."""
        return self.first + self.step * np.arange(self.count, dtype=np.int64)

    def is_whole(self, size: int) -> bool:
        """Whether it is an axis of this size."""
        return self.step == 1 and self.count == size

    def groups(self, size: int) -> int:
        """How many of its positions have all of their next `step` - 1 neighbours on an axis of this size."""
        return self.count if self.last + self.step <= size else self.count - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedWindows:
    """Windows of `window` elements along each axis of an operand of `shape`; `starts` has an array an axis.

    `tensor` is the shape of what is gathered or scattered; its axes `inner` are those of a window along the operand's
    axes `kept`, its others those of `batch`, the shape of the starts.
    """

    shape: Shape
    window: Shape
    starts: tuple[IntArray, ...]
    batch: Shape
    tensor: Shape
    inner: Shape
    kept: Shape

    @staticmethod
    def of_gather(eqn: Any, indices: npt.NDArray[Any]) -> IndexedWindows | None:
        """What a gather reads; None if some of it is filled because it lies outside."""
        numbers, mode = eqn.params["dimension_numbers"], eqn.params["mode"]
        windows = _windows(
            eqn.invars[0].aval.shape,
            eqn.params["slice_sizes"],
            indices,
            (numbers.start_index_map, numbers.operand_batching_dims, numbers.start_indices_batching_dims),
            eqn.outvars[0].aval.shape,
            (numbers.offset_dims, numbers.collapsed_slice_dims),
        )
        if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
            return windows.held_inside()
        return windows if windows.inside().all() else None

    @staticmethod
    def of_scatter(eqn: Any, indices: npt.NDArray[Any]) -> IndexedWindows:
        """What a scatter writes."""
        numbers, updates = eqn.params["dimension_numbers"], eqn.invars[2].aval.shape
        dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        sizes = iter(updates[axis] for axis in numbers.update_window_dims)
        shape = eqn.invars[0].aval.shape
        windows = _windows(
            shape,
            [1 if axis in dropped else next(sizes) for axis in range(len(shape))],
            indices,
            (
                numbers.scatter_dims_to_operand_dims,
                numbers.operand_batching_dims,
                numbers.scatter_indices_batching_dims,
            ),
            updates,
            (numbers.update_window_dims, numbers.inserted_window_dims),
        )
        return windows.held_inside() if eqn.params["mode"] is GatherScatterMode.CLIP else windows

    def held_inside(self) -> IndexedWindows:
        """Moved, as far as they must be, until they lie inside the operand."""
        most = [whole - size for whole, size in zip(self.shape, self.window, strict=True)]
        starts = tuple(np.clip(start, 0, high) for start, high in zip(self.starts, most, strict=True))
        return IndexedWindows(
            shape=self.shape,
            window=self.window,
            starts=starts,
            batch=self.batch,
            tensor=self.tensor,
            inner=self.inner,
            kept=self.kept,
        )

    @property
    def rows_per_window(self) -> int:
        """Elements of a window along the axes it is cut along."""
        return prod(size for size, whole in zip(self.window, self.shape, strict=True) if size != whole)

    def from_windows(self, windows: Array) -> Array:
        """The gathered tensor, given window after window."""
        order = self._places(range(len(self.shape)))
        split = windows.reshape(*self.batch, *self.window)
        return split.transpose([*order, *(at for at in range(split.ndim) if at not in order)]).reshape(self.tensor)

    def to_windows(self, updates: Array) -> Array:
        """What is scattered, window after window."""
        turned = updates.transpose(np.argsort(self._places(range(len(self.shape)))))
        return turned.reshape(prod(self.batch), *self.window)

    def _places(self, axes: Sequence[int]) -> list[int]:
        """The place of each axis of the tensor among those of the batch and then `axes` of the operand."""
        outer = iter(range(len(self.batch)))
        return [
            len(self.batch) + axes.index(self.kept[self.inner.index(axis)]) if axis in self.inner else next(outer)
            for axis in range(len(self.tensor))
        ]

    # Where windows are a slice of every axis, or rows of every axis.

    def positions(self) -> list[IntArray] | None:
        """The positions of each axis whose combinations are all that is meant; None if no such lists are."""
        if not self._whole_inside().all():
            return None
        found: list[IntArray] = []
        taken: set[int] = set()
        for axis in range(len(self.shape)):
            moves = self._moves(axis)
            if len(moves) > 1 or not taken.isdisjoint(moves):
                return None
            taken.update(moves)
            first = self.starts[axis].transpose([*moves, *(at for at in range(len(self.batch)) if at not in moves)])
            along = first.reshape(*(self.batch[at] for at in moves), -1)[..., 0].reshape(-1, 1)
            found.append((along + np.arange(self.window[axis], dtype=np.int64)).reshape(-1))
        repeated = any(size > 1 and at not in taken for at, size in enumerate(self.batch))
        return None if repeated else found

    def spans(self) -> list[EvenSteps] | None:
        """The positions of each axis as spans; None if no such are."""
        spans = [EvenSteps.of(numbers) for numbers in self.positions() or ()]
        found = [span for span in spans if span is not None]
        return found if found and len(found) == len(spans) else None

    def from_axes(self, chosen: Array) -> Array:
        """The gathered tensor, given the positions of each axis of the operand."""
        counts = [size // window for size, window in zip(chosen.shape, self.window, strict=True)]
        split = chosen.reshape([part for pair in zip(counts, self.window, strict=True) for part in pair])
        order = self._sources()
        rest = [axis for axis in range(split.ndim) if axis not in order]
        return split.transpose([*(axis for axis in order if axis >= 0), *rest]).reshape(self.tensor)

    def to_axes(self, updates: Array) -> Array:
        """What is scattered in the order of the operand's axes."""
        order = self._sources()
        turned = updates.transpose(sorted(range(updates.ndim), key=lambda axis: order[axis]))
        return turned.reshape([len(numbers) for numbers in self.positions() or ()])

    def _sources(self) -> list[int]:
        """For each axis of the tensor twice the operand's axis whose windows it counts, 1 more inside these; or -1."""
        owner = {at: axis for axis in range(len(self.shape)) for at in self._moves(axis)}
        found, outer = [], iter(range(len(self.batch)))
        for axis in range(len(self.tensor)):
            if axis in self.inner:
                found.append(2 * self.kept[self.inner.index(axis)] + 1)
            else:
                at = next(outer)
                found.append(2 * owner[at] if at in owner else -1)
        return found

    def _moves(self, axis: int) -> list[int]:
        """The axes of the starts along which those of an axis differ."""
        start = self.starts[axis]
        return [at for at in range(start.ndim) if np.any(start.take([0], at) != start)]

    # Where they are any rows of a table.

    def table(self, operand: Array) -> Array:
        """The operand as rows, along the axes it is cut along, and columns."""
        rows, columns = self._table_axes()
        turned = operand.transpose([*rows, *columns])
        return turned.reshape(prod(self.shape[axis] for axis in rows), prod(self.shape[axis] for axis in columns))

    def from_table(self, table: Array) -> Array:
        """The operand, given as rows and columns."""
        order = [axis for axes in self._table_axes() for axis in axes]
        return table.reshape([self.shape[axis] for axis in order]).transpose(np.argsort(order))

    def rows(self) -> IntArray:
        """The number of each row of each window, window after window."""
        axes, _ = self._table_axes()
        total = np.zeros((prod(self.batch), 1), np.int64)
        for axis in axes:
            along = self.starts[axis].reshape(-1, 1) + np.arange(self.window[axis], dtype=np.int64)
            total = (total[:, :, None] * self.shape[axis] + along[:, None, :]).reshape(len(along), -1)
        return total.reshape(-1)

    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether each of `rows` is of a window that lies inside the operand."""
        axes, _ = self._table_axes()
        return np.repeat(self._whole_inside().reshape(-1), prod(self.window[axis] for axis in axes))

    def from_rows(self, rows: Array) -> Array:
        """The gathered tensor, given its rows."""
        order, sizes = self._row_order()
        rest = [at for at in range(len(sizes)) if at not in order]
        return rows.reshape(sizes).transpose([*order, *rest]).reshape(self.tensor)

    def to_rows(self, updates: Array) -> Array:
        """What is scattered as rows."""
        order, _ = self._row_order()
        turned = updates.transpose(np.argsort(order))
        _, columns = self._table_axes()
        return turned.reshape(-1, prod(self.shape[axis] for axis in columns))

    def is_table_of_rows(self) -> bool:
        """Whether the driver makes an update of rows by index of it: of a matrix of rows that are of several columns.

        Source: graphcore/tensorflow@b2127bba driver/passes/scatter_simplifier.cc, CheckValidMultiUpdateAttributes.
        """
        same = len(self.tensor) == len(self.shape) > 1 and len(self.batch) == 1
        return same and self.kept == tuple(range(1, len(self.shape))) and self._table_axes()[0] == [0]

    def are_apart(self) -> bool:
        """Whether no element is meant twice."""
        rows = self.rows()[self.inside()]
        return len(np.unique(rows)) == len(rows)

    def _table_axes(self) -> tuple[list[int], list[int]]:
        axes = range(len(self.shape))
        return [axis for axis in axes if self.window[axis] != self.shape[axis]], [
            axis for axis in axes if self.window[axis] == self.shape[axis]
        ]

    def _row_order(self) -> tuple[list[int], list[int]]:
        """The place of each axis of the tensor among batch axes, row axes and columns; the sizes of these."""
        axes = [axis for some in self._table_axes() for axis in some]
        return self._places(axes), [*self.batch, *(self.window[axis] for axis in axes)]

    def _whole_inside(self) -> npt.NDArray[np.bool_]:
        inside = np.ones(self.batch, bool)
        for start, whole, size in zip(self.starts, self.shape, self.window, strict=True):
            inside &= (start >= 0) & (start + size <= whole)
        return inside


def _windows(
    shape: Shape,
    window: Sequence[int],
    indices: npt.NDArray[Any],
    indexed: tuple[Sequence[int], Sequence[int], Sequence[int]],
    tensor: Shape,
    axes: tuple[Sequence[int], Sequence[int]],
) -> IndexedWindows:
    """`indexed`: the axes that index vectors and batches are of, and the batches' axes of the indices."""
    batch = indices.shape[:-1]
    starts = [np.zeros(batch, np.int64) for _ in shape]
    for part, axis in enumerate(indexed[0]):
        starts[axis] = indices[..., part].astype(np.int64)
    for axis, at in zip(*indexed[1:], strict=True):
        starts[axis] = np.indices(batch)[at]
    inner, dropped = axes
    kept = [axis for axis in range(len(shape)) if axis not in dropped and axis not in indexed[1]]
    return IndexedWindows(
        shape=tuple(shape),
        window=tuple(int(size) for size in window),
        starts=tuple(starts),
        batch=batch,
        tensor=tuple(tensor),
        inner=tuple(inner),
        kept=tuple(kept),
    )
