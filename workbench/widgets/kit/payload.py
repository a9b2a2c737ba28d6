"""What crosses to the browser: columns in one binary buffer, described by a small layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES: Mapping[str, Any] = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "i2": np.int16, "u1": np.uint8}
_ALIGN = 8


def pack(columns: Mapping[str, tuple[str, npt.ArrayLike]]) -> tuple[list[dict[str, Any]], bytes]:
    """Columns as `(layout, bytes)`: each `name: (type, values)` becomes little-endian numbers at an aligned offset.

    Types: f8, f4, i4, i2, u1. A value that the type cannot hold is an `OverflowError`, never a wrong number.
    """
    layout: list[dict[str, Any]] = []
    parts: list[bytes] = []
    offset = 0
    for name, (kind, values) in columns.items():
        given = np.asarray(values)
        typed = given.astype(_TYPES[kind])
        if kind not in ("f8", "f4") and not np.array_equal(typed, given):
            raise OverflowError(f"column {name!r} does not fit into {kind}")
        raw = np.ascontiguousarray(typed).tobytes()
        layout.append({"name": name, "type": kind, "offset": offset, "length": int(typed.size)})
        parts.append(raw + bytes(-len(raw) % _ALIGN))
        offset += len(parts[-1])
    return layout, b"".join(parts)


class Names:
    """Strings stored once: `index` gives the place of a string in `values`, adding it when new."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def values(self) -> list[str]:
        """All strings, in order of their first use."""
        return list(self._places)

    def index(self, name: str) -> int:
        """The place of `name`."""
        return self._places.setdefault(name, len(self._places))

    def indexes(self, names: Iterable[Any]) -> list[int]:
        """The places of many."""
        return [self.index(str(name)) for name in names]
