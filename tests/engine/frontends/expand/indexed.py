"""Random indexings of a random array: what NumPy and JAX both take between brackets, all of it known while tracing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

Index = tuple[Any, ...]
METHODS = ("get", "set", "add", "multiply", "min", "max", "apply")


def _part(draw: st.DrawFn, size: int) -> Any:
    """A slice, a place, or places in any order, some twice and some counted from the end."""
    kind = draw(st.sampled_from(["slice", "slice", "slice", "place", "places", "type"]))
    if kind == "slice":
        ends = st.one_of(st.none(), st.integers(-size - 1, size + 1))
        return slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))
    if kind == "place":
        return draw(st.integers(-size, size - 1))
    places = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=5))
    dtype = draw(st.sampled_from([np.int64, np.int32, np.int8])) if kind == "type" else np.int64
    return np.array(places, dtype)


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Index:
    """An index of an array of this shape."""
    kind = draw(st.sampled_from(["parts", "parts", "parts", "mask", "ix", "axis mask", "broadcast"]))
    if kind == "mask":
        masked = draw(st.integers(1, len(shape)))
        bits = draw(
            st.lists(st.booleans(), min_size=int(np.prod(shape[:masked])), max_size=int(np.prod(shape[:masked])))
        )
        return (np.array(bits, bool).reshape(shape[:masked]),)
    if kind == "ix":
        return np.ix_(*(draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=4)) for size in shape))
    if kind == "axis mask":
        axis = draw(st.integers(0, len(shape) - 1))
        bits = draw(st.lists(st.booleans(), min_size=shape[axis], max_size=shape[axis]))
        return (*(slice(None),) * axis, np.array(bits, bool))
    if kind == "broadcast" and len(shape) > 1:
        rows = draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=3))
        columns = draw(st.lists(st.integers(0, shape[-1] - 1), min_size=1, max_size=3))
        return (np.array(rows)[:, None], *(slice(None),) * (len(shape) - 2), np.array(columns)[None, :])
    taken = draw(st.integers(1, len(shape)))
    parts = tuple(_part(draw, size) for size in shape[:taken])
    lists = {len(part) for part in parts if isinstance(part, np.ndarray)}
    return parts if len(lists) <= 1 else (parts[0], *(slice(None),) * (taken - 1))


@dataclass(frozen=True, slots=True)
class Indexing:
    """One method of `x.at[index]`, as a function of the array and of what is written."""

    shape: tuple[int, ...]
    index: Index
    method: str
    mode: str | None = None

    @property
    def update_shape(self) -> tuple[int, ...]:
        return np.empty(self.shape, np.int8)[self.index].shape

    def values(self) -> tuple[Any, Any]:
        numbers = np.random.default_rng(1)
        written = numbers.integers(-9, 9, self.update_shape)
        return numbers.integers(-9, 9, self.shape).astype("float32"), written.astype("float32")

    def specs(self) -> tuple[Any, Any]:
        return jax.ShapeDtypeStruct(self.shape, "float32"), jax.ShapeDtypeStruct(self.update_shape, "float32")

    def __call__(self, x: Any, u: Any) -> Any:
        if self.method == "get":
            return x[self.index] + u
        if self.method == "apply":
            return x.at[self.index].apply(lambda each: each * 3 + 1)
        return getattr(x.at[self.index], self.method)(u)


@st.composite
def indexings(draw: st.DrawFn) -> Indexing:
    """Any method at any index of an array of 1 to 4 axes."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    return Indexing(shape, draw(indices(shape)), draw(st.sampled_from(METHODS)))


@dataclass(frozen=True, slots=True)
class Placed:
    """A slice with even steps along each axis, written or read three ways: by brackets, by `lax`, and end to end."""

    shape: tuple[int, ...]
    cuts: tuple[tuple[int, int, int], ...]  # first, step, count
    how: str

    @property
    def index(self) -> Index:
        return tuple(slice(first, first + step * (count - 1) + 1, step) for first, step, count in self.cuts)

    @property
    def update_shape(self) -> tuple[int, ...]:
        return tuple(count for _, _, count in self.cuts)

    def specs(self) -> tuple[Any, Any]:
        return jax.ShapeDtypeStruct(self.shape, "float32"), jax.ShapeDtypeStruct(self.update_shape, "float32")

    def given(self, x: Any, u: Any) -> Any:
        """As people write it."""
        if self.how == "slice_update" and all(step == 1 for _, step, _ in self.cuts):
            return lax.dynamic_update_slice(x, u, [first for first, _, _ in self.cuts])
        if self.how == "slice" and all(step == 1 for _, step, _ in self.cuts):
            return lax.dynamic_slice(x, [first for first, _, _ in self.cuts], self.update_shape) * u
        if self.how in ("slice", "get"):
            return x[self.index] * u
        if self.how == "gradient":
            return jax.grad(lambda x: (x.at[self.index].set(u) ** 2).sum())(x)
        return getattr(x.at[self.index], "add" if self.how == "add" else "set")(u)

    def end_to_end(self, x: Any, u: Any) -> Any:
        """The same by slices and concatenations alone."""
        if self.how in ("slice", "get"):
            return lax.slice(x, *self._limits()) * u
        if self.how == "gradient":
            after = jax.grad(lambda y: (y**2).sum())(self._joined(x, u, 0))
            return self._joined(after, jnp.zeros_like(u), 0)
        return self._joined(x, lax.slice(x, *self._limits()) + u if self.how == "add" else u, 0)

    def _limits(self) -> tuple[Any, Any, Any]:
        firsts, steps, _ = zip(*self.cuts, strict=True)
        ends = [first + step * (count - 1) + 1 for first, step, count in self.cuts]
        return firsts, ends, steps

    def _joined(self, x: Any, u: Any, axis: int) -> Any:
        """Entry by entry along axes with steps, before, in and behind along others."""
        if axis == x.ndim:
            return u
        first, step, count = self.cuts[axis]
        if step == 1:
            inside = self._joined(lax.slice_in_dim(x, first, first + count, axis=axis), u, axis + 1)
            parts = [lax.slice_in_dim(x, 0, first, axis=axis), inside]
            parts.append(lax.slice_in_dim(x, first + count, x.shape[axis], axis=axis))
            return jnp.concatenate(parts, axis)
        parts = [lax.slice_in_dim(x, at, at + 1, axis=axis) for at in range(x.shape[axis])]
        for number in range(count):
            at = first + number * step
            one = lax.slice_in_dim(u, number, number + 1, axis=axis)
            parts[at] = self._joined(parts[at], one, axis + 1)
        return jnp.concatenate(parts, axis)


@st.composite
def placed(draw: st.DrawFn) -> Placed:
    """A slice of an array of 1 to 4 axes, of some hundred elements or some thousand."""
    rank = draw(st.integers(1, 4))
    largest = {1: 3000, 2: 60, 3: 16, 4: 8}[rank]
    shape, cuts = [], []
    for _ in range(rank):
        size = draw(st.integers(1, largest))
        first = draw(st.integers(0, size - 1))
        step = draw(st.sampled_from([1, 1, 2, 3])) if rank > 1 else 1
        cuts.append((first, step, draw(st.integers(1, -(-(size - first) // step)))))
        shape.append(size)
    how = draw(st.sampled_from(["set", "add", "get", "slice", "slice_update", "gradient"]))
    return Placed(tuple(shape), tuple(cuts), how)
