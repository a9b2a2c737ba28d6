"""The raw tables and arrays of a profile: names, columns and element types, checked when a profile is made or read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, LateArrays
from workbench.base.text import shown

Column: TypeAlias = npt.NDArray[Any]
Table: TypeAlias = Mapping[str, Column]


class Stored(Protocol):
    """What a profile stores, and what is worked out from it is given: JSON data, columns by table, bulk numbers."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Verdict, machine, options, control tree."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Columns by table and name."""

    @property
    def arrays(self) -> Mapping[str, IntArray]:
        """Numbers of tiles by name."""


MOST = (1 << 63) - 1  # the largest whole number of a file
FORMAT = "workbench profile"
FORMAT_VERSION = 6
# Columns that files of a version before have not: empty text, or 0, when they are read.
LATER_COLUMNS: Mapping[tuple[str, str], int] = {
    ("operators", "body"): 2,
    ("operators", "plan_cycles"): 3,
    ("terms", "of"): 4,
    ("steps", "fragments_index"): 6,
    ("steps", "shared_index"): 6,
    ("steps", "moves"): 6,
}
# Tables and arrays that they have not: without a row.
LATER_TABLES: Mapping[str, int] = {"moves": 6, "placements": 6}
LATER_ARRAYS: Mapping[str, int] = {"placement_numbers": 6}

_LATER_WORDS: Mapping[int, tuple[str, ...]] = {
    2: ("which operators share a body",),
    3: ("what planners charged operators",),
    4: ("which vertex a term of a step is of",),
    5: (),
    6: ("how exchanges are made up of pieces", "which tile sends to which"),
}


def not_recorded(version: int) -> str:
    """What a file of a version does not hold, in a line; "" of this version's, which hold everything."""
    lacking = [word for since, words in _LATER_WORDS.items() if since > version for word in words]
    return f"not recorded in a file of version {version}: {', '.join(lacking)}" if lacking else ""


# An address used by several categories at different steps counts for the first of this list.
# Columns by table; the letter is the numpy kind: i int64, f float64, b bool, U text.
SCHEMA: Mapping[str, Mapping[str, str]] = {
    "variables": {
        "id": "i",
        "name": "U",
        "layer": "U",
        "direction": "U",
        "kind": "U",
        "dtype": "U",
        "shape": "U",
        "bytes": "i",
        "always_live": "b",
        "ipu": "i",
        "bytes_index": "i",
        "mapping": "U",
        "interleaved": "b",
        "tiles": "i",
        "first_step": "i",
        "last_step": "i",
    },
    "steps": {
        "id": "i",
        "parent": "U",
        "kind": "U",
        "name": "U",
        "layer": "U",
        "layer_class": "U",
        "direction": "U",
        "ipu": "i",
        "to_ipu": "i",
        "stage": "i",
        "times": "i",
        "cycles": "i",
        "total_cycles": "i",
        "cause": "U",
        "bytes_sent": "i",
        "bytes_received": "i",
        "active_tiles": "i",
        "tile_balance": "f",
        "cycles_index": "i",
        "sent_index": "i",
        "received_index": "i",
        "fragments_index": "i",
        "shared_index": "i",
        "moves": "i",
        "operator": "U",
        "source": "U",
    },
    "accesses": {"step": "i", "variable": "i", "write": "b"},
    "intervals": {"variable": "i", "first": "i", "last": "i"},
    "timeline": {"ipu": "i", "position": "i", "step": "i"},
    "liveness": {
        "ipu": "i",
        "position": "i",
        "step": "i",
        "always_live_bytes": "i",
        "live_bytes": "i",
        "worst_tile": "i",
        "worst_tile_bytes": "i",
    },
    "terms": {"step": "i", "name": "U", "value": "i", "formula": "U", "inputs": "U", "of": "U"},  # both as JSON
    "operators": {
        "name": "U",
        "layer": "U",
        "direction": "U",
        "op": "U",
        "flops": "i",
        "cycles": "i",
        "plan_cycles": "i",
        "utilisation": "f",
        "code_bytes": "i",
        "temporary_bytes": "i",
        "plan": "U",
        "body": "U",
    },
    "stages": {
        "stage": "i",
        "ipu": "i",
        "compute_cycles": "i",
        "exchange_cycles": "i",
        "copy_cycles": "i",
        "idle_cycles": "i",
        "memory_bytes": "i",
        "stash_bytes": "i",
    },
    "cycle_breakdown": {"ipu": "i", "cause": "U", "cycles": "i"},
    "codelets": {"ipu": "i", "vertex": "U", "template": "U", "code_bytes": "i", "tiles_index": "i"},
    "moves": {"set": "i", "held": "i", "needed": "i", "itemsize_bytes": "i"},
    "placements": {"kind": "U", "head": "U", "numbers": "i"},  # the head as JSON
    "unmodelled": {"primitive": "U", "count": "i", "layer": "U"},
    "allocation": {
        "ipu": "i",
        "tile": "i",
        "variable": "i",
        "label": "U",
        "category": "U",
        "address": "i",
        "bytes": "i",
    },
}

# `allocated_as` is the tile of the same IPU whose "allocation" rows hold, the lowest that is equal in everything;
# `total_with_gaps` is -1 where addresses are worked out only when asked for. Shapes: k interned
# vectors; otherwise one number per IPU and tile. So are `category.<name>`, the bytes of a category
# that is not variables, and `input.<category>.<name>`, an input of its formula.
ARRAYS = (
    *("per_tile", "always_live", "live_peak", "live_peak_position", "allocated_as", "total_with_gaps"),
    "placement_numbers",
)

_DTYPES: Mapping[str, Any] = {"i": np.int64, "f": np.float64, "b": np.bool_, "U": object}


def column(values: Any, kind: str) -> Column:
    """`values` as a read-only column of the kind; text columns are object arrays of `str` as it may be shown.

    An array of numbers that is one already is kept.
    """
    is_own = isinstance(values, np.ndarray) and values.base is None and not values.flags.writeable
    if is_own and kind != "U" and values.dtype == _DTYPES[kind]:
        return np.asarray(values)
    if kind == "U":
        result = np.empty(len(values), dtype=object)
        result[:] = _texts(values)
    else:
        result = np.array(values, dtype=_DTYPES[kind])
    result.setflags(write=False)
    return result


def _texts(values: Any) -> list[str]:
    """Each value as text that may be shown; most are texts that may, and looked at once each."""
    found = list(values)
    if set(map(type, found)) <= {str} and "".join(set(found)).isprintable():
        return found
    return [shown(str(value)) for value in found]


def late_table(name: str, columns: Mapping[str, Any]) -> Table:
    """A raw table of columns of one length. Those that are functions make a read-only column when first asked for it;
    the others are values."""
    _check_names(name, columns)
    made = {key: found if callable(found) else column(found, SCHEMA[name][key]) for key, found in columns.items()}
    return LateArrays({key: made[key] for key in SCHEMA[name]})


def _check_names(name: str, columns: Iterable[str]) -> None:
    odd = sorted(set(columns) ^ set(SCHEMA[name]))
    if odd:
        raise ValueError(f"table {name!r} has the wrong columns: {', '.join(odd)}")


def table(name: str, columns: Mapping[str, Any]) -> dict[str, Column]:
    """A whole raw table by name; a missing, unknown or uneven column is a `ValueError`."""
    expected = SCHEMA[name]
    _check_names(name, columns)
    made = {key: column(columns[key], kind) for key, kind in expected.items()}
    if len({len(values) for values in made.values()}) > 1:
        raise ValueError(f"table {name!r} has columns of different lengths")
    return made


def table_from_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """A whole raw table from a mapping per row."""
    return table(name, {key: [row[key] for row in rows] for key in SCHEMA[name]})


def spoken(value: Any) -> Any:
    """JSON data with all its texts, keys too, as they may be shown."""
    if isinstance(value, Mapping):
        return {_spoken(key): spoken(item) for key, item in value.items()}
    if isinstance(value, list) and _is_plain_ascii(value):  # a control tree, say, of a hundred thousand lists
        return value
    return _spoken(value)


def _spoken(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {_spoken(key): _spoken(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_spoken(item) for item in value)
    return value


def _is_plain_ascii(value: list[Any]) -> bool:
    """Whether no text inside has a letter that JSON writes with a backslash, as it does all but printable ASCII."""
    return "\\" not in json.dumps(value)


def plain(values: Mapping[str, Any]) -> Any:
    """Values as they come back from a file, so that a loaded profile equals the one that was saved."""
    return json.loads(json.dumps(values))


def parsed(text: str | bytes) -> Any:
    """JSON of a file: whole numbers of 64 bits and finite ones, as all that is computed of them takes; ValueError."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error


def _whole(text: str) -> int:
    found = int(text) if len(text) < len(str(MOST)) + 2 else MOST + 1
    if abs(found) > MOST:
        raise ValueError(f"the whole number {text[:40]} has more than 64 bits")
    return found


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"the number {text[:40]} is not finite")
    return found
