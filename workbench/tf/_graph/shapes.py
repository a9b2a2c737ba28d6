"""Static shapes with the methods programs ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn


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
    def rank(self) -> int | None:
        """How many dimensions."""
        return len(self)

    ndims = rank


class UnknownShape(TensorShape):
    """The shape of a tensor of which not even the number of dimensions is known: there is one, `UNKNOWN`."""

    __slots__ = ()

    def _refuse(self) -> NoReturn:
        raise ValueError("A tensor of unknown rank has no sizes. To mend it: give its placeholder a shape.")

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

__all__ = ["UNKNOWN", "TensorShape", "UnknownShape"]
