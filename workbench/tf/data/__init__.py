"""`tf.data`: datasets as chains of generators, enough for the feeds of programs for the IPU.

Tests: tests/tf/test_train.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A dataset: a function that begins a new pass over its elements, and how many a pass has, where that is known."""

    begin: Callable[[], Iterator[Any]]
    elements: int = UNKNOWN_CARDINALITY

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """One element for each entry of the first dimension."""
        arrays = jax.tree_util.tree_map(np.asarray, tensors)
        counts = {len(leaf) for leaf in jax.tree_util.tree_leaves(arrays)}
        if len(counts) != 1:
            raise ValueError(f"the arrays of a dataset have first dimensions {sorted(counts)}; they must be equal")
        (count,) = counts
        return Dataset(
            lambda: (jax.tree_util.tree_map(lambda leaf, at=place: leaf[at], arrays) for place in range(count)),
            count,
        )

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element."""
        arrays = jax.tree_util.tree_map(np.asarray, tensors)
        return Dataset(lambda: iter([arrays]), 1)

    @staticmethod
    def from_generator(generator: Callable[[], Iterable[Any]], *types: Any, **others: Any) -> Dataset:
        """What a function's iterable gives."""
        return Dataset(lambda: iter(generator()))

    @staticmethod
    def range(*arguments: int, **others: Any) -> Dataset:
        """Whole numbers."""
        return Dataset(lambda: map(np.int64, range(*arguments)))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Elements of several datasets side by side."""
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        return Dataset(lambda: zip(*(iter(part) for part in parts), strict=False))

    def __iter__(self) -> Iterator[Any]:
        return self.begin()

    def cardinality(self) -> int:
        """Elements of a pass; `INFINITE_CARDINALITY`, or `UNKNOWN_CARDINALITY` where only a pass would tell."""
        return self.elements

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Elements with arrays as leaves."""
        return (jax.tree_util.tree_map(np.asarray, element) for element in self)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, **others: Any) -> Dataset:
        """Each element through a function; a tuple is its arguments."""

        def apply(element: Any) -> Any:
            return map_func(*element) if isinstance(element, tuple) else map_func(element)

        return Dataset(lambda: map(apply, iter(self)), self.elements)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Elements a function is true of."""
        return Dataset(
            lambda: (each for each in self if bool(predicate(*(each if isinstance(each, tuple) else [each]))))
        )

    def batch(self, batch_size: int, drop_remainder: bool = False, **others: Any) -> Dataset:
        """Elements stacked along a new first dimension; the last may be shorter unless it is dropped."""

        def batches() -> Iterator[Any]:
            elements = iter(self)
            while group := list(itertools.islice(elements, batch_size)):
                if len(group) == batch_size or not drop_remainder:
                    yield jax.tree_util.tree_map(
                        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *group
                    )

        whole = self.elements // batch_size if drop_remainder else -(-self.elements // batch_size)
        return Dataset(batches, whole if self.elements >= 0 else self.elements)

    def unbatch(self) -> Dataset:
        """Each entry of the first dimension on its own."""

        def entries() -> Iterator[Any]:
            for element in self:
                yield from iter(Dataset.from_tensor_slices(element))

        return Dataset(entries)

    def repeat(self, count: int | None = None) -> Dataset:
        """All elements again and again, or `count` times."""

        def passes() -> Iterator[Any]:
            turns = itertools.count() if count is None or count < 0 else iter(range(count))
            for _ in turns:
                empty = True
                for element in self:
                    empty = False
                    yield element
                if empty:
                    return

        if count is None or count < 0:
            return Dataset(passes, INFINITE_CARDINALITY)
        return Dataset(passes, self.elements * count if self.elements >= 0 else self.elements)

    def shuffle(self, buffer_size: int, seed: int | None = None, **others: Any) -> Dataset:
        """Elements in random order, drawn from a buffer."""

        def mixed() -> Iterator[Any]:
            draw = np.random.default_rng(seed)
            elements = iter(self)
            waiting = list(itertools.islice(elements, buffer_size))
            for element in elements:
                place = int(draw.integers(len(waiting)))
                waiting[place], chosen = element, waiting[place]
                yield chosen
            yield from (waiting[place] for place in draw.permutation(len(waiting)))

        return Dataset(mixed, self.elements)

    def take(self, count: int) -> Dataset:
        """The first elements."""
        taken = self.elements if count < 0 else count if self.elements == INFINITE_CARDINALITY else self._least(count)
        return Dataset(lambda: itertools.islice(iter(self), count if count >= 0 else None), taken)

    def _least(self, count: int) -> int:
        return min(count, self.elements) if self.elements >= 0 else self.elements

    def skip(self, count: int) -> Dataset:
        """All but the first elements."""
        left = max(0, self.elements - count) if self.elements >= 0 else self.elements
        return Dataset(lambda: itertools.islice(iter(self), count, None), left)

    def prefetch(self, buffer_size: int = AUTOTUNE) -> Dataset:
        """The same elements; queues of the IPU prefetch."""
        return self

    def cache(self, filename: str = "") -> Dataset:
        """The elements of the first pass, kept."""
        kept: list[Any] = []

        def elements() -> Iterator[Any]:
            if not kept:
                kept.extend(self)
            return iter(kept)

        return Dataset(elements, self.elements)

    def with_options(self, options: Any) -> Dataset:
        """The same elements."""
        return self


class Options:
    """Options of datasets, which change nothing here."""


__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Options"]
