"""A profile as one file: a zip of JSON and plain number arrays, read without running anything, written all or not.

Members: `profile.json` (format, version, meta, the names and sizes of all columns), `text/<table>.json` (text columns:
distinct strings and a code per row), `<table>/<column>.npy` and `array/<name>.npy`.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ProfileFileError
from workbench.profiler.schema import ARRAYS, FORMAT, FORMAT_VERSION, SCHEMA, Column, Table, table

if TYPE_CHECKING:
    from workbench.profiler.profile import Profile

HEAD = "profile.json"
MAX_MEMBER_BYTES = 4 << 30
_EXPECTED = "a file written by Profile.save"
_TODO = "save the profile again with profile.save(path), or compile it anew"
_KINDS = {"i": "i", "f": "f", "b": "b"}


def save_profile(profile: Profile, path: str | Path) -> Path:
    """Write to a new file beside `path`, then put it in its place: a save that stops leaves the old file whole."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(profile, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def _write(profile: Profile, file: Any) -> None:
    sizes = {name: len(next(iter(columns.values()))) for name, columns in profile.tables.items()}
    shapes = {name: list(values.shape) for name, values in profile.arrays.items()}
    head = {"format": FORMAT, "version": FORMAT_VERSION, "meta": profile.meta, "rows": sizes, "arrays": shapes}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(HEAD, json.dumps(head))
        for name, columns in profile.tables.items():
            texts = {key: _coded(columns[key]) for key, kind in SCHEMA[name].items() if kind == "U"}
            archive.writestr(f"text/{name}.json", json.dumps(texts))
            for key, kind in SCHEMA[name].items():
                if kind != "U":
                    archive.writestr(f"{name}/{key}.npy", _array_bytes(columns[key]))
        for name, values in profile.arrays.items():
            archive.writestr(f"array/{name}.npy", _array_bytes(values))


def _coded(values: Column) -> dict[str, Any]:
    places: dict[str, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values.tolist()]
    return {"values": list(places), "codes": codes}


def _array_bytes(values: Column) -> bytes:
    if values.dtype.kind == "i" and values.size and np.abs(values).max() < 2**31:
        values = values.astype(np.int32)
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def load_profile(path: str | Path) -> Profile:
    """Read a profile; a truncated, foreign or newer file is a `ProfileFileError`, a missing one `FileNotFoundError`."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"no profile file {str(place)!r}")
    try:
        with zipfile.ZipFile(place) as archive:
            head = _head(archive, place)
            return _profile(archive, head)
    except ProfileFileError:
        raise
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, TypeError, IndexError, OSError, OverflowError) as error:
        raise _damaged(place) from error
    except (NotImplementedError, RuntimeError, zlib.error, MemoryError) as error:
        raise _damaged(place) from error


def _damaged(path: Path) -> ProfileFileError:
    return ProfileFileError(f"{str(path)!r} is not a whole profile file", expected=_EXPECTED, todo=_TODO)


def _head(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    head = json.loads(_member(archive, HEAD))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise _damaged(path)
    version = head.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(path)
    if version > FORMAT_VERSION:
        raise ProfileFileError(
            f"{str(path)!r} was written by a newer workbench (file version {version})",
            expected=f"file version {FORMAT_VERSION} or older",
            todo="update workbench, or save the profile with this version",
        )
    return head


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MAX_MEMBER_BYTES:
        raise ValueError(f"{name} is too large")
    return archive.read(name)


def _profile(archive: zipfile.ZipFile, head: Mapping[str, Any]) -> Profile:
    from workbench.profiler.profile import Profile

    tables = {name: _table(archive, name, int(head["rows"][name])) for name in SCHEMA}
    arrays = {name: _numbers(archive, f"array/{name}.npy", "i", tuple(shape)) for name, shape in head["arrays"].items()}
    profile = Profile(meta=dict(head["meta"]), tables=tables, arrays=arrays)
    validate(profile)
    return profile


def _table(archive: zipfile.ZipFile, name: str, rows: int) -> Table:
    texts = json.loads(_member(archive, f"text/{name}.json"))
    columns: dict[str, Any] = {}
    for key, kind in SCHEMA[name].items():
        if kind == "U":
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
    values: Column = np.load(io.BytesIO(_member(archive, name)), allow_pickle=False)
    if values.dtype.kind != _KINDS[kind] or values.shape != shape:
        raise ValueError(f"{name} holds {values.dtype} {values.shape}")
    wide = values.astype(np.int64) if kind == "i" else values
    wide.setflags(write=False)
    return wide


_META = {
    "name": str,
    "ipus": int,
    "total_cycles": int,
    "target": dict,
    "config": dict,
    "config_changed": dict,
    "assumptions": list,
    "warnings": list,
    "formulas": dict,
    "category_formulas": dict,
    "verdict": dict,
    "trace": dict,
    "pipeline": dict,
}
_REFERENCES = (
    ("accesses", "variable", "variables"),
    ("intervals", "variable", "variables"),
)
_INDEXES = (
    ("variables", "bytes_index"),
    ("steps", "cycles_index"),
    ("steps", "sent_index"),
    ("steps", "received_index"),
)


def validate(profile: Profile) -> None:
    """Check sizes, counts and references; what does not hold together is a `ValueError`."""
    for key, kind in _META.items():
        if not isinstance(profile.meta.get(key), kind):
            raise ValueError(f"meta has no {key}")
    shape = (profile.ipus, int(profile.target["tiles_per_ipu"]))
    if any(name not in profile.arrays for name in ARRAYS):
        raise ValueError("an array is missing")
    for name, values in profile.arrays.items():
        expected = (len(values), shape[1]) if name == "per_tile" else shape
        if values.shape != expected:
            raise ValueError(f"array {name} has shape {values.shape}")
    _within(profile.arrays["allocated_as"].reshape(-1), shape[1])
    for table_name, key, other in _REFERENCES:
        _within(profile.tables[table_name][key], len(profile.tables[other]["id"]))
    for table_name, key in _INDEXES:
        _within(profile.tables[table_name][key], len(profile.arrays["per_tile"]))
    for table_name in ("variables", "allocation", "liveness", "timeline"):
        _within(profile.tables[table_name]["ipu"], profile.ipus)


def _within(values: Column, count: int) -> None:
    if len(values) and not (values.min() >= 0 and values.max() < count):
        raise ValueError("a row refers to something that is not there")
