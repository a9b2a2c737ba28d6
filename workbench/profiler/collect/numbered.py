"""Columns that are made when they are asked for: what names vectors of tiles, and what costs are made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.engine.cost import Term
from workbench.engine.memory.footprint import CodeVariant
from workbench.engine.memory.liveness import Liveness
from workbench.engine.program import DoExchange, GlobalExchange, Leaf, OnTileExecute, StreamCopy, TileProgram
from workbench.engine.program.columns import columns_of
from workbench.engine.program.moves import KeptMoves, KeptNumbers, numbers_of
from workbench.engine.time.trace import StepCost
from workbench.profiler.interning import Vectors, stacked
from workbench.profiler.schema import SCHEMA, Column, Table, column, late_table, table


class Numbered:
    """What names vectors of tiles, which are numbered as they are met, or explains a cost: made together, in one order,
    when the first of it is asked for, which of a model that is tried and left it never is. The engine's results, of
    which it is made, are held until then.
    """

    _LATE: Mapping[str, tuple[str, ...]] = {
        "variables": tuple(SCHEMA["variables"]),
        "steps": (
            *("bytes_sent", "bytes_received", "cycles_index", "sent_index", "received_index"),
            *("fragments_index", "shared_index", "moves"),
        ),
        **{name: tuple(SCHEMA[name]) for name in ("moves", "placements", "terms", "codelets")},
    }

    def __init__(
        self, program: TileProgram, costs: Mapping[int, StepCost], codelets: Sequence[CodeVariant], liveness: Liveness
    ) -> None:
        self._given: tuple[Any, ...] = (program, costs, codelets, liveness)
        self._made: _Numbering | None = None

    def _all(self) -> _Numbering:
        """Without a lock: two threads that make it make the same, and a process that is forked meanwhile goes on."""
        given, made = self._given, self._made
        if made is None:
            made = self._made or _numbered(*given)
            self._made, self._given = made, ()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """For a copy, which holds nothing of the engine."""
        self._all()
        return self.__dict__

    def columns(self, name: str) -> dict[str, Callable[[], Column]]:
        """The columns of a table that are made late."""
        return {key: partial(self._column, name, key) for key in self._LATE[name]}

    def _column(self, name: str, key: str) -> Column:
        return self._all().tables[name][key]

    def table(self, name: str) -> Table:
        """A table of which all is made late."""
        return late_table(name, self.columns(name))

    def per_tile(self) -> IntArray:
        """The vectors by their numbers, int64[vectors, tiles]."""
        return stacked(self._all().vectors)

    def placement_numbers(self) -> IntArray:
        """The numbers of all mappings of moves, end to end."""
        return numbers_of(self._all().placements)

    def code_bytes(self) -> Mapping[int, Mapping[str, int]]:
        """Code of each vertex class of each compute step; of several instantiations the largest."""
        return self._all().code_bytes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Numbering:
    """What `Numbered` is asked for: columns, vectors of tiles by their numbers, and numbers of mappings."""

    tables: Mapping[str, Mapping[str, Column]]
    vectors: Sequence[IntArray]
    placements: Sequence[KeptNumbers]
    code_bytes: Mapping[int, Mapping[str, int]]


def _numbered(
    program: TileProgram, costs: Mapping[int, StepCost], codelets: Sequence[CodeVariant], liveness: Liveness
) -> _Numbering:
    numbers = _Numbers(program.target.tiles_per_ipu)
    tables: dict[str, Mapping[str, Column]] = {
        "variables": numbers.variables(program, liveness),
        "steps": numbers.steps(program, costs),
        "codelets": numbers.codelets(program.ipus, codelets),
        "terms": _terms(program, costs),
    }
    kept = numbers.kept
    tables["moves"] = columns_from("moves", ("set", "held", "needed", "itemsize_bytes"), kept.moves)
    tables["placements"] = columns_from("placements", ("kind", "head", "numbers"), kept.forms)
    return _Numbering(
        tables=tables,
        vectors=numbers.vectors.rows,
        placements=kept.parts,
        code_bytes=_code_bytes(program, codelets),
    )


class _Numbers:
    """Numbers vectors of tiles and moves in the order in which they are met."""

    def __init__(self, tiles: int) -> None:
        self.vectors, self.kept = Vectors(tiles), KeptMoves()

    def variables(self, program: TileProgram, liveness: Liveness) -> Table:
        first_steps, last_steps = _lives(program, liveness)
        rows, vectors = program.variables, self.vectors
        return table(
            "variables",
            {
                **fields_of(rows, "id", "name", "kind", "dtype", "always_live", "ipu", "interleaved"),
                **fields_of([row.origin for row in rows], "layer", "direction"),
                "shape": [str(row.shape) for row in rows],
                "bytes": [vectors.total(row.bytes_per_tile) for row in rows],
                "bytes_index": [vectors.row(row.bytes_per_tile) for row in rows],
                "mapping": [row.mapping_text for row in rows],
                "tiles": [vectors.used(row.bytes_per_tile) for row in rows],
                "first_step": first_steps,
                "last_step": last_steps,
            },
        )

    def steps(self, program: TileProgram, costs: Mapping[int, StepCost]) -> Mapping[str, Column]:
        """What steps do to each tile."""
        moved = [_moved(step) for step in program.steps]
        exchanges = [step.exchange if isinstance(step, DoExchange | StreamCopy) else None for step in program.steps]
        row, total = self.vectors.row, self.vectors.total
        found = {
            "bytes_sent": [0 if sent is None else total(sent) for sent, _ in moved],
            "bytes_received": [0 if received is None else total(received) for _, received in moved],
            "cycles_index": [row(costs[step.id].narrow_cycles) for step in program.steps],
            "sent_index": [0 if sent is None else row(sent) for sent, _ in moved],
            "received_index": [0 if received is None else row(received) for _, received in moved],
            "fragments_index": [0 if each is None else row(each.fragments) for each in exchanges],
            "shared_index": [
                0 if each is None or each.shared_bytes is None else row(each.shared_bytes) for each in exchanges
            ],
            "moves": [0 if each is None else self.kept.number(each.moves) for each in exchanges],
        }
        return {key: column(values, SCHEMA["steps"][key]) for key, values in found.items()}

    def codelets(self, ipus: int, codelets: Sequence[CodeVariant]) -> Table:
        rows = [
            (ipu, code.vertex, code.template, code.code_bytes, self.vectors.row(code.tiles[ipu].astype(np.int64)))
            for code in codelets
            for ipu in range(ipus)
            if code.tiles[ipu].any()
        ]
        return columns_from("codelets", ("ipu", "vertex", "template", "code_bytes", "tiles_index"), rows)


def _lives(program: TileProgram, liveness: Liveness) -> IntArray:
    """First and last step of each variable's life, int64[2, variables]; -1 when no step touches it."""
    columns, intervals = columns_of(program), liveness.intervals
    found = np.full((2, len(columns.ipu)), -1)
    for ipu, steps in enumerate(liveness.timelines):
        mine = np.flatnonzero(columns.ipu == ipu) if len(steps) else np.zeros(0, np.int64)
        always = columns.always_live[mine]
        live, kept = mine[(intervals.counts[mine] > 0) & ~always], mine[always]
        found[:, kept] = steps[[0, -1], None] if len(kept) else -1
        found[0, live] = steps[intervals.ends[intervals.starts[live], 0]]
        found[1, live] = steps[intervals.ends[intervals.starts[live + 1] - 1, 1]]
    return found


def _terms(program: TileProgram, costs: Mapping[int, StepCost]) -> Table:
    texts: dict[int, tuple[str, str]] = {}
    rows = []
    for step in program.steps:
        for part in costs[step.id].cost.terms:
            written = texts.get(id(part))
            if written is None:
                written = texts[id(part)] = (json.dumps(dict(part.inputs)), _written(part.of))
            rows.append((step.id, part.name, part.value, part.formula, *written))
    return columns_from("terms", ("step", "name", "value", "formula", "inputs", "of"), rows)


def _code_bytes(program: TileProgram, codelets: Sequence[CodeVariant]) -> dict[int, dict[str, int]]:
    largest: dict[str, int] = {}
    for code in codelets:
        largest[code.vertex] = max(code.code_bytes, largest.get(code.vertex, 0))
    return {
        step.id: {group.vertex: largest.get(group.vertex, 0) for group in step.compute_set.groups}
        for step in program.steps
        if isinstance(step, OnTileExecute)
    }


def fields_of(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    """Attributes of rows, a column each."""
    return {name: list(map(attrgetter(name), rows)) for name in names}


def columns_from(name: str, keys: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    """A table from rows, whose fields are in order of the keys."""
    return table(name, dict(zip(keys, zip(*rows, strict=True) if rows else [[] for _ in keys], strict=True)))


def _moved(step: Leaf) -> tuple[Any, Any]:
    """Per-tile bytes sent and received by a step, None where it moves none."""
    if isinstance(step, DoExchange | StreamCopy):
        return step.exchange.sent_bytes, step.exchange.received_bytes
    if isinstance(step, GlobalExchange):
        sent, received = step.sent, step.received
        return (sent.sent_bytes if sent else None), (received.received_bytes if received else None)
    return None, None


def _written(terms: Iterable[Term]) -> str:
    """Terms as JSON, "" for none."""
    found = [
        {"name": part.name, "value": part.value, "formula": part.formula, "inputs": dict(part.inputs)} for part in terms
    ]
    return json.dumps(found) if found else ""
