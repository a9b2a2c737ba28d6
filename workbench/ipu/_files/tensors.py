"""Files of tensors: an 8-byte mark, the length of a JSON header, the header, then the bytes of every tensor.

The header is `{"kind", "tensors": [{"name", "dtype", "shape", "elements", "offset_bytes", "size_bytes"}]}`; a feed's
tensor has its `elements` behind each other. Numbers are little-endian. Offsets count from the end of the header. The
layout of the SDK's own files is not public; this one is told by its mark, and holds no code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.files import whole_file
from workbench.errors import InputError

MARK = b"WBTENSOR"
_LENGTH = struct.Struct("<Q")


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
    with whole_file(path) as file:
        file.writelines([MARK, _LENGTH.pack(len(header)), header, *parts])


def read(path: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a file by name; an `InputError` for a file that is none, or is cut short."""
    raw = Path(path).read_bytes()
    start = len(MARK) + _LENGTH.size
    if not raw.startswith(MARK) or len(raw) < start:
        raise InputError(f"{Path(path).name} is no file of tensors", expected="one written by ipu.utils.export_*")
    (length,) = _LENGTH.unpack(raw[len(MARK) : start])
    data = raw[start + length :]
    try:
        described = json.loads(raw[start : start + length])["tensors"]
    except (ValueError, KeyError):
        raise InputError(f"the header of {Path(path).name} cannot be read") from None
    found: dict[str, np.ndarray[Any, Any]] = {}
    for each in described:
        part = data[each["offset_bytes"] : each["offset_bytes"] + each["size_bytes"]]
        if len(part) != each["size_bytes"]:
            raise InputError(
                f"{Path(path).name} is cut short", expected=f"{each['size_bytes']} bytes of {each['name']}"
            )
        values = np.frombuffer(part, np.dtype(each["dtype"]).newbyteorder("<"))
        many = [each["elements"]] if json.loads(raw[start : start + length])["kind"] == "feed" else []
        found[each["name"]] = values.reshape([*many, *each["shape"]])
    return found


def numbered(path: str | Path, number: int) -> Path:
    """`my_dataset.bin` as `my_dataset.0.bin`."""
    target = Path(path)
    return target.with_name(f"{target.stem}.{number}{target.suffix}")


__all__ = ["Stored", "numbered", "read", "write"]
