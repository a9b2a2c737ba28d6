"""Small arithmetic on integers and on arrays of integers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from tokenize import TokenError
from typing import Any, TypeAlias, overload
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
NarrowArray: TypeAlias = npt.NDArray[np.unsignedinteger]
_Content: TypeAlias = tuple[tuple[int, ...], int]


def frozen(array: npt.ArrayLike) -> IntArray:
    """A read-only int64 copy."""
    result = np.array(array, dtype=np.int64)
    result.setflags(write=False)
    return result


def read_array(raw: bytes) -> npt.NDArray[Any]:
    """The array of a file's bytes, never objects; `ValueError`, whatever NumPy's parser of headers ends with."""
    try:
        found: npt.NDArray[Any] = np.load(io.BytesIO(raw), allow_pickle=False)
    except (TokenError, SyntaxError, RecursionError) as error:
        raise ValueError(f"the header of an array cannot be read: {error}") from error
    return found


_alive: WeakValueDictionary[_Content, IntArray] = WeakValueDictionary()


@lru_cache(maxsize=64)
def _weights(size: int) -> IntArray:
    """A weight for each element, the same at every time."""
    return np.random.default_rng(size).integers(-(2**63), 2**63 - 1, size)


def _content(array: IntArray) -> _Content:
    """Shape and a weighted sum modulo 2**64, in less than half of the time that a hash of the bytes takes."""
    return array.shape, int(array.reshape(-1).dot(_weights(array.size)))


def shared(array: npt.ArrayLike) -> IntArray:
    """The one read-only int64 array of this shape and content, for as long as somebody holds it.

    Bytes, cycles and events of tiles repeat in a program: half the arrays of a compile have the content of another.
    """
    found = np.ascontiguousarray(array, dtype=np.int64)
    content = _content(found)
    known = _alive.get(content)
    if known is not None and known.tobytes() == found.tobytes():
        return known
    if found.flags.writeable or not found.flags.owndata:
        found = frozen(found)
    _alive[content] = found
    return found


def narrow(array: IntArray) -> NarrowArray:
    """A read-only copy of numbers that are not negative in the fewest bytes that hold the largest: to be kept in
    numbers, and made wide again for arithmetic.
    """
    found: NarrowArray = array.astype(np.min_scalar_type(int(array.max(initial=0))))
    found.setflags(write=False)
    return found


class LateArrays(Mapping[str, IntArray]):
    """Arrays by name. What is given as a function is made when it is first asked for, once, and the function let go."""

    def __init__(self, known: Mapping[str, IntArray | Callable[[], IntArray]]) -> None:
        self._known = dict(known)

    def __getitem__(self, name: str) -> IntArray:
        found = self._known[name]
        if not isinstance(found, np.ndarray):
            found = self._known[name] = found()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __getstate__(self) -> dict[str, Any]:
        """For a copy: with all arrays made, as what makes them holds much more."""
        for name in self:
            self[name]
        return self.__dict__


@overload
def ceil_div(dividend: int, divisor: int) -> int: ...
@overload
def ceil_div(dividend: IntArray, divisor: int | IntArray) -> IntArray: ...
@overload
def ceil_div(dividend: int, divisor: IntArray) -> IntArray: ...
def ceil_div(dividend: int | IntArray, divisor: int | IntArray) -> int | IntArray:
    """Division of integers, or of arrays of them, rounded up."""
    return -(-dividend // divisor)


def distinct_numbers(count: int) -> npt.NDArray[np.uint64]:
    """Numbers of 64 bits without relation to each other: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
