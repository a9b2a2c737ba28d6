"""A profile as digests: table, column, twelve hexadecimal digits over every row.

Digested are all raw tables; `arrays` (a column each); `meta` (a column per key); the public tables that are worked out,
`tiles` and `blocks`; and `text`, the reports as text. Columns that name a per-tile vector by its number are digested as
those vectors, so the order in which vectors were numbered does not count; the order of rows does.

Left out, because they differ without the program being another one:
- `meta`: `engine_version` and `format_version` (they number our releases), `typical_errors` (the fidelity table's, the
  same in every profile), and the seconds of `passes`, which is a table of `phase` and `changed` here, and whether a
  phase was taken over from another compile;
- `steps.source` and the lines in calls of `meta.trace`: which file and line made a step (those of the corpus move when
  it is edited); whether one is named stays in, and so the text of the report `source` is out;
- `meta.layer_lines` and `meta.sources`: where layers were made, and the text there; `meta.asked`: how it was asked for;
- `arrays.per_tile`: the numbered vectors, which stand where they are used;
- what exchanges are made of: `moves`, `placements` and their numbers, and of steps `moves`, `fragments_index` and
  `shared_index`. Bytes and cycles of every tile stay in, to which they are held by tests/profiler/reports;
- `meta.formulas`, which says in words what the terms' formulas are, and numbers taken apart as text: their wording;
- the lines of the summary with the engine's version and with what the fidelity table says; reports are written as if
  nothing were known of typical errors, within which they say that a verdict lies.

Integers are digested as little-endian bytes, all else as JSON, in which a float is its shortest exact decimal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from workbench.engine.compile.phases import AGAIN
from workbench.profiler.profile import with_meta

DIGITS = 12
META_LEFT_OUT = (
    "engine_version",
    "format_version",
    "typical_errors",
    "formulas",
    "passes",
    "layer_lines",
    "sources",
    "asked",
)
CALLED_FROM = 10  # in a call of the control tree, where the lines of its callers begin
OF_EXCHANGES = ("moves", "placements", "placement_numbers", "fragments_index", "shared_index")
LINES_LEFT_OUT = ("Engine ", "Error ", "The verdict is in doubt", "It holds if ")
REPORTS = (
    "summary",
    "insights",
    "memory",
    "tile_map",
    "liveness_view",
    "xray",
    "trace",
    "pipeline",
    "program_tree",
    "operations",
    "roofline",
)
BLOCKS = 2000

Column: TypeAlias = Sequence[Any]
Tables: TypeAlias = dict[str, dict[str, Any]]
Digests: TypeAlias = dict[str, dict[str, str | int]]


def digests(profile: Any) -> Digests:
    """`{table: {"rows": n, column: digest}}` of all that `columns` has."""
    return {name: of_table(found) for name, found in columns(profile).items()}


def of_table(table: Mapping[str, Column]) -> dict[str, str | int]:
    """The digests of a table's columns, and its rows where it has some."""
    lengths = {len(values) for values in table.values()}
    rows: dict[str, str | int] = {"rows": lengths.pop()} if len(lengths) == 1 else {}
    return rows | {name: digest(values) for name, values in table.items()}


def digest(values: Column) -> str:
    """Twelve digits over all values, their type and shape."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        described = f"{'b' if values.dtype.kind == 'b' else 'i'}{values.shape}".encode()
        data = described + np.ascontiguousarray(values.astype("<i8")).tobytes()
    else:
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        data = json.dumps(plain, sort_keys=True, default=_plain).encode()
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def columns(profile: Any) -> Tables:
    """All that is digested, by table and column; see above."""
    vectors = [digest(row) for row in profile.arrays["per_tile"]]
    found: Tables = {
        name: _resolved(table, vectors) for name, table in profile.tables.items() if name not in OF_EXCHANGES
    }
    if "source" in found.get("steps", {}):
        found["steps"]["source"] = [bool(text) for text in found["steps"]["source"]]
    left_out = ("per_tile", *OF_EXCHANGES)
    found["arrays"] = {name: values for name, values in profile.arrays.items() if name not in left_out}
    found["meta"] = {name: [value] for name, value in profile.meta.items() if name not in META_LEFT_OUT}
    trace = profile.meta["trace"]
    found["meta"]["trace"] = [{name: _without_lines(part) for name, part in trace.items()}]
    passes = profile.meta["passes"]
    told = [each["changed"].removesuffix(AGAIN).rstrip(", ") for each in passes]
    found["passes"] = {"phase": [each["phase"] for each in passes], "changed": told}
    found["tiles"] = _of_frame(profile.tiles)
    found["blocks"] = _of_frame(profile.blocks(max_rows=BLOCKS))
    found["text"] = dict(_texts(profile))
    return found


def _without_lines(tree: Any) -> Any:
    """A control tree that says of the lines of callers only whether there are some."""
    if isinstance(tree, Mapping):
        return {name: _without_lines(part) for name, part in tree.items()}
    if isinstance(tree, list) and tree[:1] == ["call"] and len(tree) > CALLED_FROM:
        return [*tree[:CALLED_FROM], *("line" * bool(line) for line in tree[CALLED_FROM:])]
    return [_without_lines(part) for part in tree] if isinstance(tree, list) else tree


def _resolved(table: Mapping[str, Any], vectors: Sequence[str]) -> dict[str, Any]:
    return {
        name: [vectors[number] for number in values] if name.endswith("_index") else values
        for name, values in table.items()
        if name not in OF_EXCHANGES
    }


def _of_frame(frame: Any) -> dict[str, Any]:
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def _texts(profile: Any) -> Iterable[tuple[str, list[str]]]:
    """Each report as the lines of its text."""
    plain = with_meta(profile, typical_errors={})
    for name in REPORTS:
        lines = getattr(plain, name).to_text().splitlines()
        yield name, [line for line in lines if not line.startswith(LINES_LEFT_OUT)]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else dict(value) if isinstance(value, Mapping) else list(value)
