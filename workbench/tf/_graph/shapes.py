"""Static shapes with the methods programs ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from workbench.base.text import short
from workbench.errors import InputError, KindError

MOST_FED = 2**31  # sizes of what is fed are below it: indices on the chip have 32 bits
MOST = 2**63  # other sizes: what this machine can hold of them is asked before anything is made


def sizes(shape: Any, called: str = "shape") -> tuple[int | None, ...]:
    """The sizes of a shape, None for one that is not known; a `KindError` for what is no shape."""
    given = None if isinstance(shape, str | bytes | dict | set) or not hasattr(shape, "__iter__") else tuple(shape)
    found = [] if given is None else [each for each in given if each is None or _is_size(each, MOST_FED)]
    if given is None or len(found) != len(given):
        raise KindError(f"{called} is {short(shape)}", expected="a list of sizes, None where any may be fed")
    return tuple(each if each is None else int(each) for each in found)


def known_sizes(shape: Any, called: str = "shape") -> tuple[int, ...]:
    """The sizes of a shape that is known; a `KindError` for any other. One number is a shape of one dimension."""
    given = None if isinstance(shape, str | bytes | dict | set) or not hasattr(shape, "__iter__") else tuple(shape)
    given = (shape,) if given is None and _is_size(shape) else given
    if given is None or not all(map(_is_size, given)):
        raise KindError(f"{called} is {short(shape)}", expected="a list of sizes, each known and at least 0")
    return tuple(map(int, given))


def may_agree(one: Any, other: Any) -> bool:
    """Whether two static shapes can be the same when the program runs: what is not known may be anything."""
    if one is UNKNOWN or other is UNKNOWN:
        return True
    both = zip(one, other, strict=False)
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in both)


def _is_size(value: Any, most: int = MOST) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < most)


class Sizes(np.ndarray[Any, np.dtype[Any]]):
    """What `tf.shape` gives while a program is made: whole numbers that are known then, and may shape what follows."""

    @classmethod
    def of(cls, sizes: Any) -> Any:
        """These sizes; as objects where Keras asks for the shape of a batch whose size is not known yet."""
        found = np.asarray(sizes)
        return found.view(cls) if found.dtype == object else found.astype("int32").view(cls)


class TensorShape(tuple[Any, ...]):
    """A tuple of sizes; None where a size is not known."""

    __slots__ = ()

    def __new__(cls, dims: Iterable[Any] | None = ()) -> TensorShape:
        """A shape of these sizes, each known or None; of no dimension that is known where `dims` is None."""
        if dims is None:
            return UNKNOWN
        return super().__new__(cls, sizes(dims, "dims"))

    def as_list(self) -> list[Any]:
        """The sizes as a list."""
        return list(self)

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return None not in self

    def num_elements(self) -> int | None:
        """How many elements, when every size is known."""
        if not self.is_fully_defined():
            return None
        count = 1
        for size in self:
            count *= size
        return count

    @property
    def rank(self) -> int | None:
        """How many dimensions."""
        return len(self)

    ndims = rank


class UnknownShape(TensorShape):
    """The shape of a tensor of which not even the number of dimensions is known: there is one, `UNKNOWN`."""

    __slots__ = ()

    def _refuse(self) -> NoReturn:
        raise InputError("A tensor of unknown rank has no sizes. To mend it: give its placeholder a shape.")

    def __len__(self) -> int:
        self._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __getitem__(self, key: Any) -> Any:
        self._refuse()

    def as_list(self) -> list[Any]:
        """There is none."""
        self._refuse()

    def is_fully_defined(self) -> bool:
        """No."""
        return False

    @property
    def rank(self) -> int | None:
        """Nobody knows."""
        return None

    ndims = rank

    def __repr__(self) -> str:
        return "TensorShape(None)"

    __str__ = __repr__


UNKNOWN = UnknownShape()

__all__ = ["UNKNOWN", "TensorShape", "UnknownShape", "known_sizes", "may_agree", "sizes"]
