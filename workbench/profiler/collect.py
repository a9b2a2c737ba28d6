"""From the results of the engine to a profile: the one reader of engine types."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray, LateArrays
from workbench.base.collection import paused_collection
from workbench.engine import cost
from workbench.engine.cost import Term, formulas
from workbench.engine.graph.execution import execution_of
from workbench.engine.memory.allocation import Allocation, plain_placer
from workbench.engine.memory.footprint import Footprint
from workbench.engine.memory.liveness import Liveness
from workbench.engine.memory.packing import with_gaps_bytes
from workbench.engine.program import DoExchange, GlobalExchange, Leaf, OnTileExecute, StreamCopy, TileProgram
from workbench.engine.program.columns import columns_of
from workbench.engine.program.moves import KeptMoves, numbers_of
from workbench.engine.program.tree import StepContext, dump
from workbench.engine.target import MemoryMap, Target
from workbench.engine.time.exchange_cost import parts
from workbench.engine.time.trace import StepCost, Trace
from workbench.engine.vertices import load
from workbench.profiler.interning import Vectors, stacked
from workbench.profiler.memory.addresses import Placer
from workbench.profiler.memory.live_bytes import Timelines
from workbench.profiler.operators.bounds import beyond_bounds
from workbench.profiler.operators.table import OperatorTable
from workbench.profiler.profile import Profile, with_meta
from workbench.profiler.schema import (
    FORMAT_VERSION,
    SCHEMA,
    Stored,
    Table,
    late_table,
    plain,
    spoken,
    table,
    table_from_rows,
)

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled
    from workbench.engine.emit.context import Operator
    from workbench.engine.options import Options

ENGINE_VERSION = "0.1.0"
SPAN = ("variable", "first", "last")


@paused_collection()
def collect(compiled: Compiled, typical_errors: Mapping[str, Any] | None = None) -> Profile:
    """The profile of a compiled program. `typical_errors` is the fidelity table by kind of error.

    Addresses are taken over for the tiles the engine has allocated; the others are worked out when asked for, from
    the profile's own data (`addresses.py`), so nothing of the engine's results is kept.
    """
    made = _Collector(compiled.program, compiled.trace, compiled.footprint, compiled.liveness)
    tables = made.tables()
    tables["allocation"], allocated_as, with_gaps = _addresses(compiled.allocation)
    arrays = made.arrays(compiled.allocation.bounds)
    arrays |= {"allocated_as": allocated_as, "total_with_gaps": with_gaps}
    late = LateArrays(arrays | made.late())
    peak = compiled.program.target.peak_flops_per_second / compiled.program.target.clock_hz
    operators = compiled.lowered.operators if compiled.lowered else ()
    described = [_described(row, compiled.options) for row in operators]
    counted = Counter(compiled.lowered.unmodelled if compiled.lowered else ()).items()
    missing = [(primitive, count, layer) for (primitive, layer), count in counted]
    tables["unmodelled"] = _columns("unmodelled", ("primitive", "count", "layer"), missing)
    meta = _meta(compiled, made, arrays["live_peak_position"])
    meta |= {"typical_errors": dict(typical_errors or {}), "trace": dump(compiled.program)}
    meta = spoken(meta)
    profile = Profile(meta=meta, tables=tables, arrays=late, placing=placer)
    # The last table, and what warns of it, follow from the control tree, which a profile reads once.
    rows, code = made.vectors.rows, made.code_bytes()
    tables["operators"] = found = OperatorTable(described, tables, rows, code, peak, profile.control)
    profile.__dict__["steps_by_caller"] = found.steps_by_caller
    meta["warnings"] += beyond_bounds(described, found.beyond)
    return profile


def collect_again(known: Profile, compiled: Compiled, typical_errors: Mapping[str, Any] | None = None) -> Profile:
    """The profile of a compile that took over all from the one that `known` was collected of, but for its options and
    what is assumed."""
    operators = compiled.lowered.operators if compiled.lowered else ()
    described = [_described(row, compiled.options) for row in operators]
    found = known.tables["operators"]
    assert isinstance(found, OperatorTable)  # it was collected here
    warnings = [*_unmodelled(compiled), *beyond_bounds(described, found.beyond)]
    said = {"typical_errors": dict(typical_errors or {}), "warnings": warnings}
    return with_meta(known, **spoken(_asked(compiled) | said))


class _Collector:
    """Tables and arrays of one program; per-tile vectors are interned as they are met."""

    def __init__(self, program: TileProgram, trace: Trace, footprint: Footprint, liveness: Liveness) -> None:
        self.program, self.trace = program, trace
        self.footprint, self.liveness = footprint, liveness
        self.steps = program.steps
        self.vectors = Vectors(program.target.tiles_per_ipu)
        self.context = StepContext(program)
        self.formulas: set[str] = set()  # of the terms that were met
        self.kept = KeptMoves()

    def tables(self) -> dict[str, Table]:
        """All tables but those of addresses and operators."""
        return {
            "variables": self.variables(),
            "steps": self.step_rows(),
            **self.moves(),
            "accesses": self.accesses(),
            "intervals": self.intervals(),
            "timeline": self.timeline,
            "liveness": self.liveness_rows(),
            "terms": self.terms(),
            "stages": self.stages(),
            "cycle_breakdown": self.breakdown(),
            "codelets": self.codelets(),
        }

    def arrays(self, bounds: Any) -> dict[str, Any]:
        """Bulk numbers by IPU and tile, `bounds` among them."""
        ipus = range(self.program.ipus)
        always = np.stack([self.liveness.always_live_bytes(ipu) for ipu in ipus])
        found = {
            "always_live": always,
            "live_peak": bounds - always,
            "live_peak_position": np.stack([self.liveness.peak_positions(ipu) for ipu in ipus]),
        }
        found |= {f"category.{name}": values for name, values in self.footprint.categories.items()}
        for category, inputs in self.footprint.inputs.items():
            for name, value in inputs.items():
                if isinstance(value, np.ndarray):
                    found[f"input.{category}.{name}"] = np.asarray(value, dtype=np.int64)
        return found

    def late(self) -> dict[str, Callable[[], IntArray]]:
        """What only some views look into, and takes as long as a tenth of a profile: call it when all vectors are
        known, as it holds nothing else."""
        return {
            "per_tile": partial(stacked, self.vectors.rows),
            "placement_numbers": partial(numbers_of, self.kept.parts),
        }

    def variables(self) -> Table:
        first_steps, last_steps = self._lives()
        rows = self.program.variables
        vectors = self.vectors
        return table(
            "variables",
            {
                **_fields(rows, "id", "name", "kind", "dtype", "always_live", "ipu", "interleaved"),
                **_fields([row.origin for row in rows], "layer", "direction"),
                "shape": [str(row.shape) for row in rows],
                "bytes": [vectors.total(row.bytes_per_tile) for row in rows],
                "bytes_index": [vectors.row(row.bytes_per_tile) for row in rows],
                "mapping": [row.mapping_text for row in rows],
                "tiles": [vectors.used(row.bytes_per_tile) for row in rows],
                "first_step": first_steps,
                "last_step": last_steps,
            },
        )

    def _lives(self) -> IntArray:
        """First and last step of each variable's life, int64[2, variables]; -1 when no step touches it."""
        columns, intervals = columns_of(self.program), self.liveness.intervals
        found = np.full((2, len(columns.ipu)), -1)
        for ipu, steps in enumerate(self.liveness.timelines):
            mine = np.flatnonzero(columns.ipu == ipu) if len(steps) else np.zeros(0, np.int64)
            always = columns.always_live[mine]
            live, kept = mine[(intervals.counts[mine] > 0) & ~always], mine[always]
            found[:, kept] = steps[[0, -1], None] if len(kept) else -1
            found[0, live] = steps[intervals.ends[intervals.starts[live], 0]]
            found[1, live] = steps[intervals.ends[intervals.starts[live + 1] - 1, 1]]
        return found

    def step_rows(self) -> Table:
        costs = [self.trace.steps[step.id] for step in self.steps]
        times = [self.trace.executions.get(step.id, 0) for step in self.steps]
        moved = [_moved(step) for step in self.steps]
        exchanges = [step.exchange if isinstance(step, DoExchange | StreamCopy) else None for step in self.steps]
        context, row, total = self.context, self.vectors.row, self.vectors.total
        return table(
            "steps",
            {
                **_fields(self.steps, "id", "kind", "name", "ipu", "operator"),
                **_fields([step.origin for step in self.steps], "layer", "layer_class", "direction", "source"),
                **_fields(costs, "cycles", "cause", "active_tiles", "tile_balance"),
                "parent": [context.path.get(step.id, "") for step in self.steps],
                "to_ipu": [step.to_ipu if isinstance(step, GlobalExchange) else -1 for step in self.steps],
                "stage": self.stage_of_step,
                "times": times,
                "total_cycles": [cost.cycles * count for cost, count in zip(costs, times, strict=True)],
                "bytes_sent": [0 if sent is None else total(sent) for sent, _ in moved],
                "bytes_received": [0 if received is None else total(received) for _, received in moved],
                "cycles_index": [row(cost.cycles_per_tile) for cost in costs],
                "sent_index": [0 if sent is None else row(sent) for sent, _ in moved],
                "received_index": [0 if received is None else row(received) for _, received in moved],
                "fragments_index": [0 if each is None else row(each.fragments) for each in exchanges],
                "shared_index": [
                    0 if each is None or each.shared_bytes is None else row(each.shared_bytes) for each in exchanges
                ],
                "moves": [0 if each is None else self.kept.number(each.moves) for each in exchanges],
            },
        )

    def moves(self) -> dict[str, Table]:
        """What exchanges are made of; call it after the steps, which name it."""
        return {
            "moves": _columns("moves", ("set", "held", "needed", "itemsize_bytes"), self.kept.moves),
            "placements": _columns("placements", ("kind", "head", "numbers"), self.kept.forms),
        }

    @cached_property
    def stage_of_step(self) -> list[int]:
        """The stage of each step, -1 without one."""
        return [self.context.stage_of(step) for step in self.steps]

    def accesses(self) -> Table:
        columns = columns_of(self.program)
        found = columns.accesses
        rows = {"step": columns.step_id[found.step], "variable": found.variable, "write": found.write}
        return table("accesses", rows)

    def intervals(self) -> Table:
        found = self.liveness.intervals
        return table("intervals", dict(zip(SPAN, (found.variable, *found.ends.T), strict=True)))

    @cached_property
    def timeline(self) -> Table:
        """The timelines of all IPUs."""
        steps = self.liveness.timelines
        lengths = [len(places) for places in steps]
        columns = {"ipu": partial(_numbered, lengths), "position": partial(_counted, lengths)}
        return Timelines(steps, {**columns, "step": partial(_joined, steps)})

    def liveness_rows(self) -> Table:
        """Curves over the positions, made when they are asked for."""
        peaks = [self.liveness.step_peaks(ipu) for ipu in range(self.program.ipus)]
        always = [int(self.liveness.always_live_bytes(ipu).sum()) for ipu in range(self.program.ipus)]
        lengths = [len(found.live_bytes) for found in peaks]
        curves = {name: [getattr(found, name) for found in peaks] for name in _CURVES}
        return late_table(
            "liveness",
            {
                **{name: partial(self.timeline.__getitem__, name) for name in SCHEMA["timeline"]},
                "always_live_bytes": partial(_repeated, always, lengths),
                **{name: partial(_joined, curve) for name, curve in curves.items()},
            },
        )

    def terms(self) -> Table:
        texts: dict[int, tuple[str, str]] = {}
        rows = []
        for step in self.steps:
            for part in self.trace.steps[step.id].cost.terms:
                written = texts.get(id(part))
                if written is None:
                    written = texts[id(part)] = (json.dumps(dict(part.inputs)), _written(part.of))
                    self.formulas.update(each.formula for each in (part, *part.of))
                rows.append((step.id, part.name, part.value, part.formula, *written))
        return _columns("terms", ("step", "name", "value", "formula", "inputs", "of"), rows)

    def breakdown(self) -> Table:
        rows = [
            (ipu, cause, cycles)
            for ipu, found in enumerate(self.trace.cycle_breakdown)
            for cause, cycles in found.items()
            if cycles
        ]
        return _columns("cycle_breakdown", ("ipu", "cause", "cycles"), rows)

    def codelets(self) -> Table:
        rows = [
            (ipu, code.vertex, code.template, code.code_bytes, self.vectors.row(code.tiles[ipu].astype(np.int64)))
            for code in self.footprint.variants
            for ipu in range(self.program.ipus)
            if code.tiles[ipu].any()
        ]
        return _columns("codelets", ("ipu", "vertex", "template", "code_bytes", "tiles_index"), rows)

    def code_bytes(self) -> dict[int, dict[str, int]]:
        """Code of each vertex class of each compute step; of several instantiations the largest."""
        largest: dict[str, int] = {}
        for code in self.footprint.variants:
            largest[code.vertex] = max(code.code_bytes, largest.get(code.vertex, 0))
        return {
            step.id: {group.vertex: largest.get(group.vertex, 0) for group in step.compute_set.groups}
            for step in self.steps
            if isinstance(step, OnTileExecute)
        }

    def stages(self) -> Table:
        """A row per stage; a stage's idle cycles and memory are those of its IPU."""
        found: dict[int, dict[str, Any]] = {}
        for step, stage in zip(self.steps, self.stage_of_step, strict=True):
            if stage < 0:
                continue
            row = found.setdefault(stage, {"stage": stage, "ipu": step.ipu, "compute": 0, "exchange": 0, "copy": 0})
            cost: StepCost = self.trace.steps[step.id]
            kind = "copy" if cost.cause in ("host", "inter_ipu", "collective") else str(cost.cause)
            row[kind] = row.get(kind, 0) + cost.cycles * self.trace.executions.get(step.id, 0)
        stash: Counter[int] = Counter()
        for own in self.program.variables:
            if own.kind == "stash":
                stash[own.ipu] += self.vectors.total(own.bytes_per_tile)
        return table_from_rows("stages", [self._stage(found[stage], stash) for stage in sorted(found)])

    def _stage(self, row: Mapping[str, Any], stash: Mapping[int, int]) -> dict[str, Any]:
        ipu = row["ipu"]
        spent = self.trace.cycle_breakdown[ipu]
        return {
            "stage": row["stage"],
            "ipu": ipu,
            "compute_cycles": row["compute"],
            "exchange_cycles": row["exchange"],
            "copy_cycles": row["copy"],
            "idle_cycles": sum(cycles for cause, cycles in spent.items() if cause.startswith("idle_")),
            "memory_bytes": int((self.liveness.always_live_bytes(ipu) + self.liveness.peak_bytes(ipu)).sum()),
            "stash_bytes": stash[ipu],
        }


def _described(row: Operator, options: Options) -> dict[str, Any]:
    """An operator with the temporary bytes that the options allow it; 0 where none limits them."""
    found = {each.name: getattr(row, each.name) for each in dataclasses.fields(row)}
    bound = found.pop("bound")
    return found | {"bound_bytes": bound(options) if bound else 0}


def _kept(made: IntArray) -> IntArray:
    """An array that was made here and belongs to nobody else, as a column that is not copied again."""
    found = np.ascontiguousarray(made, dtype=np.int64)
    found.setflags(write=False)
    return found


_CURVES = ("live_bytes", "worst_tile", "worst_tile_bytes")


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return _kept(np.concatenate(parts))


def _repeated(values: Sequence[int], lengths: Sequence[int]) -> IntArray:
    return _kept(np.repeat(values, lengths))


def _numbered(lengths: Sequence[int]) -> IntArray:
    return _repeated(range(len(lengths)), lengths)


def _counted(lengths: Sequence[int]) -> IntArray:
    numbers = np.arange(max(lengths, default=0))
    return _joined([numbers[:length] for length in lengths])


def _fields(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    return {name: list(map(attrgetter(name), rows)) for name in names}


def _columns(name: str, keys: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
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


def evaluated(formula: str, inputs: Mapping[str, Any]) -> str:
    """The arithmetic of a formula of the engine on the inputs a profile keeps; "" where this engine has no such."""
    load()
    if formula not in formulas:
        return ""
    try:
        return cost.evaluated(formula, inputs)
    except TypeError:  # of another version, whose formula took other inputs
        return ""


def exchange_parts(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Cycles of a tile, or of every tile, by part of an exchange: sending, receiving, control, staging; {} where this
    engine's formula has other inputs than those a profile keeps."""
    try:
        return parts(**inputs)._asdict()
    except TypeError:
        return {}


# Addresses


def _addresses(allocation: Allocation) -> tuple[Table, Any, Any]:
    """Raw rows, and int64[ipus, tiles] of the tile whose rows hold and of the bytes with gaps (-1 not yet known)."""
    made = {(tile.ipu, tile.tile): tile for tile in allocation.allocated}
    classes = np.stack(allocation.classes)
    with_gaps = np.full(classes.shape, -1, dtype=np.int64)
    for (ipu, first), tile in made.items():
        with_gaps[ipu, classes[ipu] == first] = tile.total_with_gaps_bytes
    rows = [
        (tile.ipu, tile.tile, block.variable, block.label, block.category, block.address, block.size_bytes)
        for tile in made.values()
        for block in tile.blocks
    ]
    keys = ("ipu", "tile", "variable", "label", "category", "address", "bytes")
    return _columns("allocation", keys, rows), classes, with_gaps


def placer(profile: Stored, ipu: int) -> Placer:
    """The engine's placement for one IPU of a profile."""
    variables, spans, target = profile.tables["variables"], profile.tables["intervals"], profile.meta["target"]
    names = ("non_interleaved_bytes", "interleaved_bytes", "executable_bytes")
    apart = bool(target.get("data_apart"))  # files of earlier versions do not say
    highest = int(profile.meta["verdict"]["max_tile_bytes"])
    memory = MemoryMap(**{name: int(target[name]) for name in names}, data_apart=apart)
    lives: dict[int, list[tuple[int, int]]] = {}
    for variable, first, last in zip(*(spans[name].tolist() for name in SPAN), strict=True):
        lives.setdefault(variable, []).append((first, last))
    always = variables["always_live"]
    own = [row for row in np.flatnonzero(variables["ipu"] == ipu).tolist() if always[row] or row in lives]
    periods = [() if always[row] else tuple(lives[row]) for row in own]
    return Placer(
        own=np.array(own, dtype=np.int64),
        place=plain_placer(memory, periods, variables["interleaved"][own].tolist(), highest),
        with_gaps=partial(with_gaps_bytes, memory),
    )


# What is not a table


def _target(target: Target) -> dict[str, Any]:
    found = {field.name: getattr(target, field.name) for field in dataclasses.fields(target)}
    plain = {name: value for name, value in found.items() if isinstance(value, int | float | str)}
    return {
        **plain,
        "bytes_per_tile": target.bytes_per_tile,
        "non_interleaved_bytes": target.memory.non_interleaved_bytes,
        "interleaved_bytes": target.memory.interleaved_bytes,
        "executable_bytes": target.memory.executable_bytes,
        "data_apart": target.memory.data_apart,
        "peak_flops_per_second": target.peak_flops_per_second,
        "what_if": list(target.what_if),
    }


def _verdict(compiled: Compiled, positions: Any) -> dict[str, Any]:
    worst = compiled.allocation.worst
    steps, used = compiled.liveness.timelines[worst.ipu], worst.total_with_gaps_bytes
    step = int(steps[positions[worst.ipu, worst.tile]]) if len(steps) else -1
    return {
        "fits": compiled.allocation.fits,
        "max_tile_bytes": used,
        "peak": {"ipu": worst.ipu, "tile": worst.tile, "step": step, "bytes": used},
    }


def _formulas(compiled: Compiled, named: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Formulas in use by id, and by category of the footprint its formula and inputs (those that are one number)."""
    categories: dict[str, Any] = {}
    footprint = compiled.footprint
    for name, values in footprint.categories.items():
        place = np.unravel_index(int(values.argmax()), values.shape)
        parts = footprint.cost(name, int(place[0]), int(place[1])).terms
        if parts:
            inputs = footprint.inputs.get(name, {})
            fixed = {key: value for key, value in inputs.items() if not isinstance(value, np.ndarray)}
            categories[name] = {"formula": parts[0].formula, "inputs": fixed}
    used = {*named, *(found["formula"] for found in categories.values())}
    keys = ("text", "source", "unit", "error_kind")
    known = {name: {key: getattr(formulas.get(name), key) for key in keys} for name in sorted(used)}
    return known, categories


def _unmodelled(compiled: Compiled) -> list[str]:
    names = sorted({primitive for primitive, _ in compiled.lowered.unmodelled} if compiled.lowered else ())
    return [f"{name} has no model of its own and goes by the generic rule" for name in names]


def _asked(compiled: Compiled) -> dict[str, Any]:
    """With which options a program was made, how, and what was assumed."""
    return {
        "config": plain(dict(compiled.options)),
        "config_changed": plain(dict(compiled.options.changed)),
        "passes": [dataclasses.asdict(phase) for phase in compiled.phases],
        "assumptions": list(compiled.graph.assumptions),
    }


def _meta(compiled: Compiled, made: _Collector, positions: Any) -> dict[str, Any]:
    graph, program = compiled.graph, compiled.program
    replicas = int(str(graph.meta.get("replicas", 1)))
    accumulation = int(str(graph.meta.get("gradient_accumulation_steps", program.pipeline.get("micro_batches", 1))))
    samples = graph.batch_size * accumulation * execution_of(graph).updates * replicas
    known, categories = _formulas(compiled, made.formulas)
    compute = [step.compute_set for step in made.steps if isinstance(step, OnTileExecute)]
    vertices = sum(group.count * len(group.tiles) for found in compute for group in found.groups)
    return {
        "name": program.name,
        **{name: getattr(graph, name) for name in ("mode", "batch_size")},
        "samples_per_call": 0 if graph.mode == "function" else samples,
        "engine_version": ENGINE_VERSION,
        "format_version": FORMAT_VERSION,
        "ipus": program.ipus,
        "replicas": replicas,
        "remote_buffers": [plain(dataclasses.asdict(buffer)) for buffer in program.remote_buffers],
        "total_cycles": compiled.trace.total_cycles,
        **_asked(compiled),
        "target": _target(program.target),
        "warnings": _unmodelled(compiled),
        "formulas": known,
        "category_formulas": categories,
        "pipeline": plain(dict(program.pipeline)),
        "program": {"vertices": vertices, "functions": len(program.functions)},
        "verdict": _verdict(compiled, positions),
    }
