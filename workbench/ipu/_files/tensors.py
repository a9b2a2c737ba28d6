"""Files of tensors: an 8-byte mark, the length of a JSON header and the CRC-32 of all that follows, the header, then
the bytes of every tensor.

The header is `{"kind", "tensors": [{"name", "dtype", "shape", "elements", "offset_bytes", "size_bytes"}]}`; a feed's
tensor has its `elements` behind each other. Numbers are little-endian. Offsets count from the end of the header. The
layout of the SDK's own files is not public; this one is told by its mark, and holds no code.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.files import whole_file
from workbench.errors import InputError

MARK = b"WBTENSO2"
_HEAD = struct.Struct("<QI")  # length of the header, CRC-32 of all behind this


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stored:
    """One tensor of a file: its name and its values, with the elements of a feed first."""

    name: str
    values: np.ndarray[Any, Any]
    elements: int = 1


def write(path: str | Path, kind: str, tensors: Sequence[Stored]) -> None:
    """Write a file of tensors, whole or not at all."""
    described, parts, offset = [], [], 0
    for each in tensors:
        values = np.asarray(each.values, order="C")
        raw = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        shape = values.shape[1:] if kind == "feed" else values.shape
        described.append(
            {
                "name": each.name,
                "dtype": str(values.dtype),
                "shape": list(shape),
                "elements": each.elements,
                "offset_bytes": offset,
                "size_bytes": len(raw),
            }
        )
        parts.append(raw)
        offset += len(raw)
    header = json.dumps({"kind": kind, "tensors": described}).encode()
    checksum = zlib.crc32(header)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    with whole_file(path) as file:
        file.writelines([MARK, _HEAD.pack(len(header), checksum), header, *parts])


def read(path: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a file by name; an `InputError` for a file that is none, or is cut short."""
    if not Path(path).is_file():
        raise InputError(f"{str(path)!r} is no file", expected="one written by ipu.utils.export_*")
    raw = Path(path).read_bytes()
    start = len(MARK) + _HEAD.size
    if not raw.startswith(MARK) or len(raw) < start:
        raise InputError(f"{Path(path).name} is no file of tensors", expected="one written by ipu.utils.export_*")
    length, checksum = _HEAD.unpack(raw[len(MARK) : start])
    if zlib.crc32(memoryview(raw)[start:]) != checksum:
        raise InputError(f"{Path(path).name} is cut short or damaged", expected="the file as it was written")
    data = raw[start + length :]
    try:
        header = json.loads(raw[start : start + length])
        described = [_Described(**each) for each in header["tensors"]]
        is_feed = header["kind"] == "feed"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"the header of {Path(path).name} cannot be read") from None
    try:
        return {each.name: _values(each, data, is_feed) for each in described}
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{Path(path).name} is cut short or damaged: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """A tensor as the header has it."""

    name: str
    dtype: str
    shape: list[int]
    elements: int
    offset_bytes: int
    size_bytes: int


def _values(each: _Described, data: bytes, is_feed: bool) -> np.ndarray[Any, Any]:
    if not (each.offset_bytes >= 0 and 0 <= each.size_bytes <= len(data) - each.offset_bytes):
        raise ValueError(f"{each.size_bytes} bytes of {each.name!r} at {each.offset_bytes} are not there")
    kind = np.dtype(each.dtype).newbyteorder("<")
    part = data[each.offset_bytes : each.offset_bytes + each.size_bytes]
    return np.frombuffer(part, kind).reshape([*([each.elements] if is_feed else []), *each.shape])


def numbered(path: str | Path, number: int) -> Path:
    """`my_dataset.bin` as `my_dataset.0.bin`."""
    target = Path(path)
    return target.with_name(f"{target.stem}.{number}{target.suffix}")


__all__ = ["Stored", "numbered", "read", "write"]
