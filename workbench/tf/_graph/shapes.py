"""Static shapes with the methods programs ask of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class TensorShape(tuple[Any, ...]):
    """A tuple of sizes; None where a size is not known."""

    __slots__ = ()

    def __new__(cls, dims: Iterable[Any] = ()) -> TensorShape:
        return super().__new__(cls, (None if size is None else int(size) for size in dims))

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
    def rank(self) -> int:
        """How many dimensions."""
        return len(self)

    ndims = rank


__all__ = ["TensorShape"]
