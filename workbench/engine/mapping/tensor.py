"""A value that has been placed: which variables hold it and which tile holds each element."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from workbench.base.arrays import IntArray
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.mapping import Mapping


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tensor:
    """Elements of `shape` and `dtype` placed by `mapping` on `ipu`, held by `variables` (ids).

    A view shares the variables of what it looks at; a concatenation has several.
    """

    variables: tuple[int, ...]
    mapping: Mapping
    shape: tuple[int, ...]
    dtype: str
    ipu: int = 0

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of one element."""
        return ITEMSIZE_BYTES[self.dtype]

    def elements_per_tile(self, tiles: int) -> IntArray:
        """int64[tiles]."""
        return self.mapping.elements_per_tile(tiles)

    def view(self, mapping: Mapping, shape: tuple[int, ...]) -> Tensor:
        """The same memory seen with another shape."""
        return replace(self, mapping=mapping, shape=shape)

    def __str__(self) -> str:
        held = ",".join(f"v{name}" for name in self.variables)
        return f"{self.dtype}[{','.join(map(str, self.shape))}] in {held} as {self.mapping}"
