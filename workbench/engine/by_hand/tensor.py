"""Tensors declared by hand: their memory, where it is mapped, and parts cut out of them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Named
from dataclasses import dataclass
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.checked import checked_methods
from workbench.base.text import short
from workbench.base.whole import MOST_EXACT, whole
from workbench.engine.mapping import Mapping, by_hand, linear
from workbench.engine.mapping.types import Linear, intern
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.base.categories import VariableKind
    from workbench.engine.target import Target

Key: TypeAlias = "int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]"


class Owner(Protocol):
    """The graph that tensors belong to."""

    @property
    def target(self) -> Target:
        """The machine."""


@dataclass(slots=True, eq=False, kw_only=True)
class HandVariable:
    """Memory declared by hand; `mapping` is set once, by one of the tensor's map methods."""

    graph: Owner
    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: VariableKind | None = None
    interleaved: bool = False
    mapping: Mapping | None = None

    def placed(self) -> Mapping:
        """Where it lies; an error unless every element is on a tile."""
        if self.mapping is None:
            raise InputError(
                f"variable {self.name!r} is on no tile",
                expected="a tile for every element",
                todo=f"call {self.name}.map_linearly() or {self.name}.map({{tile: slice(...)}})",
            )
        starts, owners = self.mapping.runs()
        if (owners < 0).any():
            first = int(np.flatnonzero(owners < 0)[0])
            stop = int(np.append(starts, prod(self.shape))[first + 1])
            raise InputError(
                f"elements {int(starts[first])} to {stop} of variable {self.name!r} are on no tile",
                expected="a tile for every element",
                todo="map them too",
            )
        return self.mapping


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
@checked_methods
class Tensor:
    """A variable, or a part of one cut with `[...]` (integers and slices). Strides and offset are in elements."""

    variable: HandVariable
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dtype(self) -> str:
        """Element type, by its numpy name."""
        return self.variable.dtype

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether it is all of its variable, in order."""
        return self.elements == prod(self.variable.shape) and self.contiguous

    @property
    def contiguous(self) -> bool:
        """Whether the elements are one run of the variable's flat index."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def flat(self) -> IntArray:
        """Flat indices of its elements in the variable, int64[elements]."""
        result = np.array([self.offset], dtype=np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            result = (result[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
        return result

    def runs(self) -> tuple[IntArray, IntArray]:
        """First and last + 1 flat index of its contiguous pieces."""
        if self.contiguous:
            return np.array([self.offset]), np.array([self.offset + self.elements])
        indices = np.sort(self.flat())
        breaks = np.flatnonzero(np.diff(indices) != 1)
        first = np.concatenate(([0], breaks + 1)).astype(np.int64)
        last = np.append(breaks, len(indices) - 1).astype(np.int64)
        return indices[first], indices[last] + 1

    def map_linearly(self, *, tiles: int | None = None, first_tile: int = 0, grain: int = 0) -> Tensor:
        """Spread the variable evenly in order over `tiles` tiles from `first_tile` on; returns the tensor.

        Without `tiles`: over as many tiles as get at least 128 B each, as PopLibs does. `grain` elements stay
        together (default: as many as one 64-bit word holds).
        """
        variable, target = self.variable, self.variable.graph.target
        count = target.tiles_per_ipu
        self._mappable()
        whole(f"grain of {variable.name}.map_linearly", grain, least=0, most=MOST_EXACT)
        check_tile(first_tile, count, f"{variable.name}.map_linearly: first_tile is {first_tile}")
        if tiles is not None and not 1 <= tiles <= count - first_tile:
            raise InputError(
                f"{variable.name} was mapped over {tiles} tiles from tile {first_tile} on",
                expected=f"1 to {count - first_tile}",
                todo="use fewer tiles or a graph with more of them",
            )
        found = linear(
            variable.shape,
            variable.dtype,
            count - first_tile,
            first_tile=first_tile,
            grain=grain,
            vector_bytes=target.data_path_bytes,
        )
        if tiles is None:
            variable.mapping = found
        else:
            variable.mapping = intern(
                Linear(shape=variable.shape, grain=found.grain, tiles=tiles, first_tile=first_tile)
            )
        return self

    def map(self, pieces: Named[int, slice | Iterable[slice]]) -> Tensor:
        """Place pieces of the flat variable by hand: `{tile: slice, tile: [slice, slice]}`; returns the tensor.

        Errors: a tile the IPU has not, pieces that overlap or leave the variable. Elements left out are an error
        when the program is compiled.
        """
        self._mappable()
        size, count = prod(self.variable.shape), self.variable.graph.target.tiles_per_ipu
        listed = []
        for tile, given in pieces.items():
            check_tile(tile, count, f"{self.variable.name} is mapped to tile {tile!r}")
            for piece in given if isinstance(given, Iterable) else (given,):
                listed.append((int(tile), *self._piece(piece, size)))
        self.variable.mapping = by_hand(self.variable.shape, listed)
        return self

    def _piece(self, piece: Any, size: int) -> tuple[int, int]:
        """First and last + 1 element of a slice of the flat variable; an error for what is none or leaves it."""
        found = indices(piece, size) if isinstance(piece, slice) else None
        if found is None or found[2] != 1 or max(piece.start or 0, piece.stop or 0) > size:
            raise InputError(
                f"a piece of variable {self.variable.name!r} is {short(piece)}",
                expected=f"slices of 0 to {size}",
                todo="write {tile: slice(first, stop)}, or a list of slices for a tile",
            )
        return found[:2]

    def _mappable(self) -> None:
        if not self.whole:
            raise InputError(f"a part of {self.variable.name!r} was mapped", todo="map the whole variable")
        if self.variable.mapping is not None:
            raise InputError(f"variable {self.variable.name!r} is mapped twice", expected="one mapping")

    def __getitem__(self, key: Key) -> Tensor:
        """A part, as numpy cuts it; no copy."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(part is ... for part in keys):
            place = next(index for index, part in enumerate(keys) if part is ...)
            keys[place : place + 1] = [slice(None)] * (len(self.shape) - len(keys) + 1)
        if len(keys) > len(self.shape):
            raise InputError(f"{len(keys)} indices into {self}", expected=f"at most {len(self.shape)}")
        keys += [slice(None)] * (len(self.shape) - len(keys))
        shape, strides, offset = [], [], self.offset
        for part, size, stride in zip(keys, self.shape, self.strides, strict=True):
            if isinstance(part, slice):
                found = indices(part, size)
                if found is None or found[2] < 1:
                    raise InputError(f"{part} of {self}", expected="whole numbers, and a positive step")
                first, stop, step = found
                shape.append(len(range(first, stop, step)))
                strides.append(stride * step)
                offset += first * stride
            elif isinstance(part, (int, np.integer)) and not isinstance(part, bool) and -size <= part < size:
                offset += (int(part) % size) * stride
            else:
                raise InputError(f"index {part!r} into {self}", expected=f"integers below {size}, or slices")
        return Tensor(variable=self.variable, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def __str__(self) -> str:
        return f"{self.variable.name}: {self.dtype}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__


def indices(part: slice, size: int) -> tuple[int, int, int] | None:
    """First, last + 1 and step of a slice of so many elements; None where it is of no whole numbers, or steps by 0."""
    try:
        return part.indices(size)
    except (TypeError, ValueError):
        return None


def check_tile(tile: Any, tiles: int, what: str) -> None:
    """An error when `tile` is not a tile number below `tiles`."""
    if isinstance(tile, bool) or not isinstance(tile, (int, np.integer)) or not 0 <= tile < tiles:
        raise InputError(what, expected=f"tiles 0 to {tiles - 1}", todo="use fewer tiles or a graph with more of them")
