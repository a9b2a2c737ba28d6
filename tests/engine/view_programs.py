"""Hypothesis strategy: programs of pads, crops and what else only says how memory is seen, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

MOST_BORDER = 2  # times the source
CHANNELS = (1, 3, 8, 16, 64)


def _pad(x: Any, draw: Random) -> Any:
    """A border of 0 to twice the source, at the ends of some axes."""
    for _ in range(100):
        widths = [(0, 0)] * x.ndim
        for axis, size in enumerate(x.shape):
            if draw.random() < 0.5:
                most = max(1, int(size * draw.choice((0.01, 0.1, 0.3, 1.0))))
                widths[axis] = (draw.randint(0, most), draw.randint(0, most))
        if (
            math.prod(size + sum(ends) for size, ends in zip(x.shape, widths, strict=True))
            <= (1 + MOST_BORDER) * x.size
        ):
            return jnp.pad(x, widths)
    return x


def _crop(x: Any, draw: Random) -> Any:
    """Part of some axes, here and there with a stride."""
    starts, limits, strides = [], [], []
    for size in x.shape:
        first = draw.randrange(size) if draw.random() < 0.5 else 0
        last = draw.randint(first + 1, size) if first else size
        starts.append(first)
        limits.append(last)
        strides.append(draw.choice((1, 1, 1, 2)))
    return lax.slice(x, starts, limits, strides)


def _interior(x: Any, draw: Random) -> Any:
    """Zeros between the elements of one axis, and a crop or a border at its ends."""
    axis = draw.randrange(x.ndim)
    ends = [(0, 0, 0)] * x.ndim
    ends[axis] = (draw.choice((0, -1, 1)) if x.shape[axis] > 2 else 0, draw.choice((0, 1)), draw.choice((1, 2)))
    return lax.pad(x, jnp.zeros((), x.dtype), ends)


def _concatenate(x: Any, draw: Random) -> Any:
    """With a part of itself, computed or as it is."""
    axis = draw.randrange(x.ndim)
    part = lax.slice_in_dim(x, 0, draw.randint(1, x.shape[axis]), axis=axis)
    return jnp.concatenate([x, jnp.sin(part) if draw.random() < 0.5 else part], axis)


def _split(x: Any, draw: Random) -> Any:
    """In two, which change places."""
    axis = draw.randrange(x.ndim)
    if x.shape[axis] == 1:
        return x
    one, other = jnp.split(x, [draw.randint(1, x.shape[axis] - 1)], axis)
    return jnp.concatenate([jnp.sin(other), one], axis)


View = Callable[[Any, Random], Any]
VIEWS: dict[str, View] = {
    "pad": _pad,
    "crop": _crop,
    "interior": _interior,
    "concatenate": _concatenate,
    "split": _split,
    "roll": lambda x, draw: jnp.roll(x, draw.randint(0, 100), draw.randrange(x.ndim)),
    "reverse": lambda x, draw: jnp.flip(x, draw.randrange(x.ndim)),
    "compute": lambda x, draw: jnp.tanh(x),
    "mirrored": lambda x, draw: x + jnp.flip(x, 0),
}


@dataclass(frozen=True, slots=True)
class Viewed:
    """A program that a failing test prints as it can be made again: views one after another, then a computation."""

    shape: tuple[int, ...]
    dtype: str
    views: tuple[tuple[str, int], ...]
    gradient: bool = False

    def seen(self, x: Any) -> Any:
        """The views alone."""
        for name, seed in self.views:
            x = VIEWS[name](x, Random(seed))
        return x

    def __call__(self, x: Any, *cotangents: Any) -> Any:
        """What is seen, computed on; or what flows back through the views, computed on."""
        return jnp.tanh(jax.vjp(self.seen, x)[1](*cotangents)[0] if self.gradient else self.seen(x))

    def specs(self) -> list[Any]:
        x = jax.ShapeDtypeStruct(self.shape, self.dtype)
        return [x, jax.eval_shape(self.seen, x)] if self.gradient else [x]

    @property
    def count(self) -> int:
        """Views: a concatenation has a slice beside it here; a split and a roll are two slices and a concatenation."""
        return sum({"concatenate": 2, "split": 3, "roll": 3, "mirrored": 2}.get(name, 1) for name, _ in self.views)

    @property
    def most_elements(self) -> int:
        """Of the largest tensor that comes in or goes out."""
        return max(math.prod(one.shape) for one in (*self.specs(), jax.eval_shape(self.__call__, *self.specs())))


@st.composite
def shapes(draw: st.DrawFn, elements: int) -> tuple[int, ...]:
    """One to four axes of about so many elements together."""
    rank = draw(st.integers(1, 4))
    if rank == 1:
        return (elements,)
    inner = draw(st.sampled_from(CHANNELS))
    rows = max(1, elements // inner)
    if rank == 2:
        return (rows, inner)
    if rank == 3:
        outer = max(1, int(rows ** draw(st.floats(0.1, 0.9))))
        return (outer, max(1, rows // outer), inner)
    batch = draw(st.sampled_from((1, 2, 8)))
    side = max(1, math.isqrt(rows // batch))
    return (batch, side, max(1, rows // batch // side), inner)


@st.composite
def viewed(draw: st.DrawFn, most_bytes: float, *, views: int = 4) -> Viewed:
    """Up to so many views of an array of 1 kB to `most_bytes`, every order of magnitude as often."""
    dtype = draw(st.sampled_from(("float32", "float16")))
    size_bytes = 10 ** draw(st.floats(3, math.log10(most_bytes)))
    shape = draw(shapes(int(size_bytes) // jnp.dtype(dtype).itemsize))
    steps = st.tuples(st.sampled_from(sorted(VIEWS)), st.integers(0, 999))
    chosen = draw(st.lists(steps, min_size=1, max_size=views))
    return Viewed(shape, dtype, tuple(chosen), draw(st.booleans()))
