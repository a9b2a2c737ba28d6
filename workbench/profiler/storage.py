"""A profile as one file: a zip of JSON and plain number arrays, read without running anything, written all or not.

Members: `profile.json` (format, version, meta, the names and sizes of all columns), `text/<table>.json` (text columns:
distinct strings and a code per row), `<table>/<column>.npy` and `array/<name>.npy`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.arrays import read_array
from workbench.base.files import whole_file, write_archive
from workbench.errors import InputError, ProfileFileError
from workbench.profiler.memory.addresses import Placer
from workbench.profiler.profile import Profile
from workbench.profiler.registry import method
from workbench.profiler.schema import (
    FORMAT,
    FORMAT_VERSION,
    LATER_ARRAYS,
    LATER_COLUMNS,
    LATER_TABLES,
    SCHEMA,
    Column,
    Stored,
    Table,
    not_recorded,
    parsed,
    spoken,
    table,
)
from workbench.profiler.validity import validate

HEAD = "profile.json"
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MAX_BYTES = 512 << 20  # of all members unpacked; the largest profiles take less than half
_EXPECTED = "a file written by Profile.save"
_TODO = "save the profile again with profile.save(path), or compile it anew"
_KINDS = {"i": "i", "f": "f", "b": "b"}


@method("save")
def save_profile(profile: Profile, path: str | Path) -> Path:
    """Write the profile to one file; an interrupted save leaves the old file whole. Returns the path."""
    with whole_file(path) as file:
        _write(profile, file)
    return Path(path)


def profile_bytes(profile: Profile) -> bytes:
    """What `save_profile` writes."""
    buffer = io.BytesIO()
    _write(profile, buffer)
    return buffer.getvalue()


def _write(profile: Profile, file: Any) -> None:
    sizes = {name: len(next(iter(columns.values()))) for name, columns in profile.tables.items()}
    shapes = {name: list(values.shape) for name, values in profile.arrays.items()}
    head = {"format": FORMAT, "version": FORMAT_VERSION, "meta": profile.meta, "rows": sizes, "arrays": shapes}
    write_archive(file, [(HEAD, json.dumps(head)), *_members(profile)], level=_level)


def _level(name: str) -> int:
    """Numbers of tiles repeat far apart: packed harder they take half the bytes, which other columns do not."""
    return 6 if name.startswith("array/") else 1


def _members(profile: Profile) -> Iterator[tuple[str, str | bytes]]:
    for name, columns in profile.tables.items():
        texts = {key: _coded(columns[key]) for key, kind in SCHEMA[name].items() if kind == "U"}
        yield f"text/{name}.json", json.dumps(texts)
        for key, kind in SCHEMA[name].items():
            if kind != "U":
                yield f"{name}/{key}.npy", _array_bytes(columns[key])
    for name, values in profile.arrays.items():
        yield f"array/{name}.npy", _array_bytes(values)


def _coded(values: Column) -> dict[str, Any]:
    places: dict[str, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values.tolist()]
    return {"values": list(places), "codes": codes}


def _array_bytes(values: Column) -> bytes:
    if values.dtype.kind == "i" and values.size and values.min() > -(2**31) and values.max() < 2**31:
        values = values.astype(np.int32)
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def load_profile(path: str | Path) -> Profile:
    """Read a profile; a truncated, foreign or newer file is a `ProfileFileError`, a missing one `FileNotFoundError`."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"the path of a profile is {path!r}", expected="a text or a pathlib.Path")
    place = Path(path)
    try:
        found = place.exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise ProfileFileError(f"{str(path)!r} cannot be read: {why}", expected=_EXPECTED, todo=_TODO) from None
    if not found:
        raise FileNotFoundError(f"no profile file {str(path)!r}")
    if not place.is_file():  # a pipe would be waited for
        raise ProfileFileError(f"{str(path)!r} is a folder, a pipe or a device", expected=_EXPECTED, todo=_TODO)
    return _read(place, repr(str(path)))


def profile_from(content: bytes) -> Profile:
    """The profile whose file has these bytes; others are a `ProfileFileError`."""
    return _read(io.BytesIO(content), "this")


def _read(file: Path | io.BytesIO, named: str) -> Profile:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ValueError("unpacks to more than any profile")
            if any(member.compress_type not in _PACKED for member in archive.infolist()):
                raise ValueError("is packed as no profile is")  # by a packer whose errors are its own
            head = _head(archive, named)
            return _profile(archive, head)
    except ProfileFileError:
        raise
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, TypeError, IndexError, OSError, OverflowError) as error:
        raise _damaged(named) from error
    except (NotImplementedError, RuntimeError, zlib.error, MemoryError) as error:
        raise _damaged(named) from error


def _damaged(named: str) -> ProfileFileError:
    return ProfileFileError(f"{named} is not a whole profile file", expected=_EXPECTED, todo=_TODO)


def _head(archive: zipfile.ZipFile, named: str) -> dict[str, Any]:
    head = parsed(archive.read(HEAD))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise _damaged(named)
    version = head.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(named)
    if version > FORMAT_VERSION:
        raise ProfileFileError(
            f"{named} was written by a newer workbench (file version {version})",
            expected=f"file version {FORMAT_VERSION} or older",
            todo="update workbench, or save the profile with this version",
        )
    return head


def _profile(archive: zipfile.ZipFile, head: Mapping[str, Any]) -> Profile:
    version = int(head["version"])
    tables = {name: _table(archive, name, _rows(head, name), version) for name in SCHEMA}
    later = {name for name, since in LATER_ARRAYS.items() if since > version}
    arrays = {name: np.zeros(0, np.int64) for name in later}
    for name, shape in head["arrays"].items():
        if name not in later:
            arrays[name] = _numbers(archive, f"array/{name}.npy", "i", tuple(shape))
    profile = Profile(meta=_meta(head["meta"], version), tables=tables, arrays=arrays, placing=_placing)
    validate(profile)
    return profile


def _meta(stored: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The JSON data, with a warning that says what an earlier version did not record."""
    meta: dict[str, Any] = spoken(dict(stored))
    lacking = not_recorded(version)
    if lacking and isinstance(meta.get("warnings"), list):
        meta["warnings"] = [*meta["warnings"], lacking]
    return meta


def _rows(head: Mapping[str, Any], name: str) -> int:
    return 0 if LATER_TABLES.get(name, 1) > int(head["version"]) else int(head["rows"][name])


def _placing(profile: Stored, ipu: int) -> Placer:
    """The engine's placement; it is loaded only for a tile whose addresses the file does not hold."""
    from workbench.profiler.collect import placer

    return placer(profile, ipu)


def _table(archive: zipfile.ZipFile, name: str, rows: int, version: int) -> Table:
    if LATER_TABLES.get(name, 1) > version:
        return table(name, dict.fromkeys(SCHEMA[name], ()))
    texts = parsed(archive.read(f"text/{name}.json"))
    columns: dict[str, Any] = {}
    for key, kind in SCHEMA[name].items():
        if LATER_COLUMNS.get((name, key), 1) > version:
            columns[key] = [""] * rows if kind == "U" else [0] * rows
        elif kind == "U":
            columns[key] = _text(texts[key], rows)
        else:
            columns[key] = _numbers(archive, f"{name}/{key}.npy", kind, (rows,))
    return table(name, columns)


def _text(coded: Mapping[str, Any], rows: int) -> Column:
    values = np.empty(len(coded["values"]), dtype=object)
    values[:] = [str(value) for value in coded["values"]]
    codes = np.array(coded["codes"], dtype=np.int64)
    if len(codes) != rows or (rows and not (codes.min() >= 0 and codes.max() < len(values))):
        raise ValueError("text column of the wrong size")
    found: Column = values[codes]
    return found


def _numbers(archive: zipfile.ZipFile, name: str, kind: str, shape: tuple[int, ...]) -> Column:
    values: Column = read_array(archive.read(name))
    if values.dtype.kind != _KINDS[kind] or values.shape != shape:
        raise ValueError(f"{name} holds {values.dtype} {values.shape}")
    wide = values.astype(np.int64) if kind == "i" else values
    wide.setflags(write=False)
    return wide
