"""Whether the parts of a profile from a file hold together: shapes, kinds, references, and a control tree that ends.

A profile that passes can be shown by every report; what does not is a `ValueError`, which the reader of files explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.base.categories import MEMORY_CATEGORIES
from workbench.base.causes import CAUSES
from workbench.profiler.exchanges.placements import MOST_ELEMENTS, placements_of
from workbench.profiler.schema import ARRAYS, Column, Stored, parsed
from workbench.profiler.timeline.tree import DIRECTIONS, MOST_UNROLLED, Controlled

NONE = -1
MOVE = ("held", "needed", "itemsize_bytes")

_COUNT = {"type": "integer", "minimum": 0}
_RATE = {"type": "number", "exclusiveMinimum": 0}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_NUMBERS_BY_NAME = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean"]}}
_FORMULA = {
    "type": "object",
    "required": ["text", "source", "unit", "error_kind"],
    "additionalProperties": {"type": "string"},
}
_TARGET_COUNTS = ("tiles_per_ipu", "bytes_per_tile", "non_interleaved_bytes", "interleaved_bytes", "executable_bytes")
_TARGET_RATES = ("clock_hz", "peak_flops_per_second", "exchange_bytes_per_cycle", "host_bytes_per_second")
META: Mapping[str, Any] = {
    "type": "object",
    "required": [
        *("name", "ipus", "replicas", "mode", "batch_size", "total_cycles", "target", "config", "config_changed"),
        *("assumptions", "warnings", "formulas", "category_formulas", "verdict", "trace", "pipeline"),
    ],
    "properties": {
        "name": {"type": "string"},
        "mode": {"type": ["string", "null"]},
        "batch_size": {"type": ["integer", "null"], "minimum": 0},
        "samples_per_call": {"type": ["integer", "null"], "minimum": 0},
        "calls_per_update": {"type": "integer", "minimum": 1},
        "engine_version": {"type": "string"},
        "made_by_hand": {"type": "boolean"},
        "ipus": {"type": "integer", "minimum": 1},
        "replicas": {"type": "integer", "minimum": 1},
        "total_cycles": _COUNT,
        "target": {
            "type": "object",
            "required": ["name", *_TARGET_RATES, "what_if", *_TARGET_COUNTS],
            "properties": {
                "name": {"type": "string"},
                "what_if": _TEXTS,
                **dict.fromkeys(_TARGET_COUNTS, _COUNT),
                **dict.fromkeys(_TARGET_RATES, _RATE),
            },
        },
        "config": {"type": "object"},
        "config_changed": {"type": "object"},
        "asked": {"type": "object", "additionalProperties": {"type": "string"}},
        "assumptions": _TEXTS,
        "warnings": _TEXTS,
        "formulas": {"type": "object", "additionalProperties": _FORMULA},
        "category_formulas": {
            "type": "object",
            "propertyNames": {"enum": list(MEMORY_CATEGORIES)},
            "additionalProperties": {
                "type": "object",
                "required": ["formula", "inputs"],
                "properties": {"formula": {"type": "string"}, "inputs": _NUMBERS_BY_NAME},
            },
        },
        "typical_errors": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["typical"],
                "properties": {
                    "typical": {"type": "number", "minimum": 0},
                    "spread": {"type": "number", "minimum": 0},
                    **dict.fromkeys(("numbers", "cases"), _COUNT),
                    "against": _TEXTS,
                    "ratios": {"type": "array", "items": _RATE},
                },
            },
        },
        "verdict": {
            "type": "object",
            "required": ["fits", "max_tile_bytes", "peak"],
            "properties": {
                "fits": {"type": "boolean"},
                "max_tile_bytes": _COUNT,
                "peak": {
                    "type": "object",
                    "required": ["ipu", "tile", "step", "bytes"],
                    "properties": {
                        **dict.fromkeys(("ipu", "tile", "bytes"), _COUNT),
                        "step": {"type": "integer", "minimum": NONE},
                    },
                },
            },
        },
        "trace": {
            "type": "object",
            "required": ["entry", "functions"],
            "properties": {"entry": {"type": "array"}, "functions": {"type": "object"}},
        },
        "pipeline": {
            "type": "object",
            "properties": dict.fromkeys(("stages", "micro_batches", "updates"), _COUNT),
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "layer_lines": {"type": "object", "additionalProperties": {"type": "string"}},
        "sources": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["name", "stretches"],
                "properties": {
                    "name": {"type": "string"},
                    "stretches": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "minItems": 2,
                            "additionalItems": False,
                            "items": [{"type": "integer", "minimum": 1}, _TEXTS],
                        },
                    },
                },
            },
        },
    },
}

# (table, column, what it counts in, the least value)
_REFERENCES = (
    ("accesses", "variable", "variables", 0),
    ("accesses", "step", "steps", 0),
    ("intervals", "variable", "variables", 0),
    ("timeline", "step", "steps", 0),
    ("liveness", "step", "steps", 0),
    ("terms", "step", "steps", 0),
    ("variables", "first_step", "steps", NONE),
    ("variables", "last_step", "steps", NONE),
    ("allocation", "variable", "variables", NONE),
    ("variables", "bytes_index", "per_tile", 0),
    ("steps", "cycles_index", "per_tile", 0),
    ("steps", "sent_index", "per_tile", 0),
    ("steps", "received_index", "per_tile", 0),
    ("steps", "fragments_index", "per_tile", 0),
    ("steps", "shared_index", "per_tile", 0),
    ("moves", "held", "placements", 0),
    ("moves", "needed", "placements", 0),
    ("codelets", "tiles_index", "per_tile", 0),
    ("liveness", "worst_tile", "tiles", 0),
    ("allocation", "tile", "tiles", 0),
    ("variables", "ipu", "ipus", 0),
    ("allocation", "ipu", "ipus", 0),
    ("liveness", "ipu", "ipus", 0),
    ("timeline", "ipu", "ipus", 0),
    ("stages", "ipu", "ipus", 0),
    ("cycle_breakdown", "ipu", "ipus", 0),
    ("codelets", "ipu", "ipus", 0),
    ("steps", "ipu", "ipus", NONE),
    ("steps", "to_ipu", "ipus", NONE),
)
_COUNTS = (
    *(("variables", name) for name in ("bytes", "tiles")),
    *(("steps", name) for name in ("times", "cycles", "total_cycles", "bytes_sent", "bytes_received", "active_tiles")),
    *(("liveness", name) for name in ("always_live_bytes", "live_bytes", "worst_tile_bytes", "position")),
    *(("intervals", name) for name in ("first", "last")),
    *(("allocation", name) for name in ("address", "bytes")),
    ("cycle_breakdown", "cycles"),
    ("unmodelled", "count"),
    ("moves", "itemsize_bytes"),
)


def validate(profile: Controlled) -> None:
    """Check sizes, kinds, counts and references; what does not hold together is a `ValueError`."""
    _described(profile.meta)
    _arrays(profile)
    _tables(profile)
    _timelines(profile)
    _exchanges(profile)
    _verdict(profile)
    _ = profile.control  # its parser is its check


def _described(meta: Mapping[str, Any]) -> None:
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator()(meta)
    except JsonSchemaValueException as problem:
        raise ValueError(f"meta: {problem.name}") from problem


@lru_cache(maxsize=1)
def _validator() -> Any:
    # jsonschema, where Jupyter's formats are installed, reads a grammar for a second before it checks anything
    from fastjsonschema import compile as validator_of

    return validator_of(META, use_default=False)


def _arrays(profile: Stored) -> None:
    shape = (int(profile.meta["ipus"]), int(profile.meta["target"]["tiles_per_ipu"]))
    if any(name not in profile.arrays for name in ARRAYS):
        raise ValueError("an array is missing")
    for name, values in profile.arrays.items():
        expected = {"per_tile": (len(values), shape[1]), "placement_numbers": (len(values),)}.get(name, shape)
        if values.shape != expected:
            raise ValueError(f"array {name} has shape {values.shape}")
        if name == "placement_numbers":
            continue
        if values.size and values.min() < (NONE if name == "total_with_gaps" else 0):
            raise ValueError(f"array {name} holds what is not a count")
    if not len(profile.arrays["per_tile"]):
        raise ValueError("array per_tile is empty")
    _within(profile.arrays["allocated_as"].reshape(-1), shape[1])


def _tables(profile: Stored) -> None:
    tables = profile.tables
    sizes = {name: len(next(iter(columns.values()))) for name, columns in tables.items()}
    sizes |= {
        "per_tile": len(profile.arrays["per_tile"]),
        "tiles": int(profile.meta["target"]["tiles_per_ipu"]),
        "ipus": int(profile.meta["ipus"]),
    }
    if tables["variables"]["id"].tolist() != list(range(sizes["variables"])):
        raise ValueError("the ids of variables are not 0, 1, 2 ...")
    if len(np.unique(tables["steps"]["id"])) < sizes["steps"]:
        raise ValueError("two steps have the same id")
    for name, key, counted, least in _REFERENCES:
        if counted == "steps":
            _one_of(tables[name][key], [*tables["steps"]["id"].tolist(), *([least] if least < 0 else [])])
        else:
            _within(tables[name][key], sizes[counted], least)
    for name, key in _COUNTS:
        _within(tables[name][key], MOST_UNROLLED)
    _one_of(tables["variables"]["kind"], MEMORY_CATEGORIES)
    _one_of(tables["allocation"]["category"], MEMORY_CATEGORIES)
    _one_of(tables["steps"]["cause"], CAUSES)
    _one_of(tables["cycle_breakdown"]["cause"], CAUSES)
    _one_of(tables["steps"]["direction"], DIRECTIONS)
    _one_of(tables["terms"]["formula"], profile.meta["formulas"])
    _terms(tables["terms"], profile.meta["formulas"])
    described = profile.meta["category_formulas"].values()
    if any(each["formula"] not in profile.meta["formulas"] for each in described):
        raise ValueError("a category names a formula that is not there")


def _terms(terms: Mapping[str, Column], formulas: Any) -> None:
    """What the numbers of steps were computed from: numbers by name, some with formulas of their own."""
    for text in set(terms["inputs"].tolist()):
        _numbers_by_name(parsed(text))
    for text in set(terms["of"].tolist()) - {""}:
        parts = parsed(text)
        if not isinstance(parts, list):
            raise ValueError("the terms of a step are no list")
        for part in parts:
            if not isinstance(part, dict) or set(part) != {"name", "value", "formula", "inputs"}:
                raise ValueError("a term of a step has other parts than name, value, formula and inputs")
            if not isinstance(part["name"], str) or type(part["value"]) is not int:
                raise ValueError("a term of a step has no name or no whole value")
            _numbers_by_name(part["inputs"])
            if not isinstance(part["formula"], str) or part["formula"] not in formulas:
                raise ValueError("a row names something that is not there")


def _numbers_by_name(found: Any) -> None:
    if not isinstance(found, dict) or not all(map(_plain, found.values())):
        raise ValueError("the inputs of a step's cost are no numbers by name")


def _plain(value: Any) -> bool:
    """A number, a text, or lists of them: counts by vertex class are pairs."""
    return all(map(_plain, value)) if isinstance(value, list) else isinstance(value, int | float | str)


def _timelines(profile: Stored) -> None:
    """Positions count 0, 1, 2 ... on every IPU; intervals and curves stay on the timeline of theirs."""
    timeline, spans, curve = (profile.tables[name] for name in ("timeline", "intervals", "liveness"))
    lengths = np.bincount(timeline["ipu"], minlength=int(profile.meta["ipus"]))
    order = np.lexsort((timeline["position"], timeline["ipu"]))
    counted = np.concatenate([np.arange(length) for length in lengths])
    home = profile.tables["variables"]["ipu"][spans["variable"]]
    holds = (
        (timeline["position"][order] == counted).all()
        and (spans["first"] <= spans["last"]).all()
        and (spans["last"] < lengths[home]).all()
        and (curve["position"] < lengths[curve["ipu"]]).all()
        and (profile.arrays["live_peak_position"] < np.maximum(lengths, 1)[:, None]).all()
    )
    if not holds:
        raise ValueError("a position is on no timeline")


def _exchanges(profile: Stored) -> None:
    """Moves are of mappings of as many elements, and steps name sets of moves that are there."""
    tiles, moves = int(profile.meta["target"]["tiles_per_ipu"]), profile.tables["moves"]
    known = placements_of(profile.tables["placements"], profile.arrays["placement_numbers"], tiles)
    _one_of(profile.tables["steps"]["moves"], {0, *moves["set"].tolist()})
    if any(
        known[held].size != known[needed].size or known[held].size * itemsize > MOST_ELEMENTS
        for held, needed, itemsize in zip(*(moves[name].tolist() for name in MOVE), strict=True)
    ):
        raise ValueError("a move is between tensors of different sizes")


def _verdict(profile: Stored) -> None:
    ipu, tile, step = (int(profile.meta["verdict"]["peak"][name]) for name in ("ipu", "tile", "step"))
    _within(np.array([ipu]), int(profile.meta["ipus"]))
    _within(np.array([tile]), int(profile.meta["target"]["tiles_per_ipu"]))
    _one_of(np.array([step]), [NONE, *profile.tables["steps"]["id"].tolist()])


def _within(values: Column, count: int, least: int = 0) -> None:
    if len(values) and not (values.min() >= least and values.max() < count):
        raise ValueError("a row refers to something that is not there")


def _one_of(values: Column, names: Any) -> None:
    if not set(values.tolist()) <= set(names):
        raise ValueError("a row names something that is not there")
