"""Tables, arrays and meta of a compiled program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray, LateArrays
from workbench.base.collection import paused_collection
from workbench.engine.memory.allocation import Allocation
from workbench.engine.memory.footprint import Footprint
from workbench.engine.memory.liveness import Liveness
from workbench.engine.program import GlobalExchange, TileProgram
from workbench.engine.program.columns import columns_of
from workbench.engine.program.tree import StepContext, dump
from workbench.engine.time.trace import Trace
from workbench.profiler.collect.asked import SPAN, placer
from workbench.profiler.collect.meta import asked_of, meta_of, unmodelled_of
from workbench.profiler.collect.numbered import Numbered, columns_from, fields_of
from workbench.profiler.memory.live_bytes import Timelines
from workbench.profiler.operators.bounds import beyond_bounds
from workbench.profiler.operators.table import OperatorTable
from workbench.profiler.operators.temporaries import Temporaries
from workbench.profiler.profile import Profile, with_meta
from workbench.profiler.schema import SCHEMA, Table, late_table, spoken, table, table_from_rows

if TYPE_CHECKING:
    from workbench.engine.compile import Compiled
    from workbench.engine.emit.context import Operator
    from workbench.engine.options import Options


@paused_collection()
def collect(compiled: Compiled, typical_errors: Mapping[str, Any] | None = None) -> Profile:
    """The profile of a compiled program. `typical_errors` is the fidelity table by kind of error.

    Addresses are taken over for the tiles the engine has allocated; the others are worked out when asked for, from
    the profile's own data (`addresses.py`). Columns that few look at are made when they are asked for (`numbered.py`);
    what of the engine's results they are made of is held until then.
    """
    made = _Collector(compiled.program, compiled.trace, compiled.footprint, compiled.liveness)
    tables: dict[str, Table] = made.tables()
    tables["allocation"], allocated_as, with_gaps = _addresses(compiled.allocation)
    arrays = made.arrays(compiled.allocation.bounds)
    arrays |= {"allocated_as": allocated_as, "total_with_gaps": with_gaps}
    late = LateArrays(arrays | made.late())
    operators = compiled.lowered.operators if compiled.lowered else ()
    described = [_described(row, compiled.options) for row in operators]
    counted = Counter(compiled.lowered.unmodelled if compiled.lowered else ()).items()
    missing = [(primitive, count, layer) for (primitive, layer), count in counted]
    tables["unmodelled"] = columns_from("unmodelled", ("primitive", "count", "layer"), missing)
    meta = meta_of(compiled, made.formulas(), arrays["live_peak_position"])
    meta |= {"typical_errors": dict(typical_errors or {}), "trace": dump(compiled.program)}
    meta = spoken(meta)
    profile = Profile(meta=meta, tables=tables, arrays=late, placing=placer)
    # The last table, and what warns of it, follow from the control tree, which a profile reads once.
    tables["operators"] = found = OperatorTable(
        described, tables, made.temporaries(), made.numbered.code_bytes, meta["target"], profile.control
    )
    meta["warnings"] += beyond_bounds(described, found.beyond)
    return profile


def collect_again(known: Profile, compiled: Compiled, typical_errors: Mapping[str, Any] | None = None) -> Profile:
    """The profile of a compile that took over all from the one that `known` was collected of, but for its options and
    what is assumed."""
    operators = compiled.lowered.operators if compiled.lowered else ()
    described = [_described(row, compiled.options) for row in operators]
    found = known.tables["operators"]
    assert isinstance(found, OperatorTable)  # it was collected here
    warnings = [*unmodelled_of(compiled), *beyond_bounds(described, found.beyond)]
    said = {"typical_errors": dict(typical_errors or {}), "warnings": warnings}
    return with_meta(known, **spoken(asked_of(compiled) | said))


class _Collector:
    """Tables and arrays of one program."""

    def __init__(self, program: TileProgram, trace: Trace, footprint: Footprint, liveness: Liveness) -> None:
        self.program, self.trace = program, trace
        self.footprint, self.liveness = footprint, liveness
        self.steps = program.steps
        self.context = StepContext(program)
        self.numbered = Numbered(program, trace.steps, footprint.variants, liveness)

    def tables(self) -> dict[str, Table]:
        """All tables but those of addresses and operators."""
        return {
            "variables": self.numbered.table("variables"),
            "steps": self.step_rows,
            "moves": self.numbered.table("moves"),
            "placements": self.numbered.table("placements"),
            "accesses": self.accesses(),
            "intervals": self.intervals(),
            "timeline": self.timeline,
            "liveness": self.liveness_rows(),
            "terms": self.numbered.table("terms"),
            "stages": self.stages(),
            "cycle_breakdown": self.breakdown(),
            "codelets": self.numbered.table("codelets"),
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
        """What only some views look into, and takes as long as a tenth of a profile."""
        return {"per_tile": self.numbered.per_tile, "placement_numbers": self.numbered.placement_numbers}

    @cached_property
    def step_rows(self) -> Table:
        """Where steps stand and what they take; what they do to each tile is made when it is asked for."""
        costs = [self.trace.steps[step.id] for step in self.steps]
        times = [self.trace.executions.get(step.id, 0) for step in self.steps]
        context = self.context
        known: dict[str, Any] = {
            **fields_of(self.steps, "id", "kind", "name", "ipu", "operator"),
            **fields_of([step.origin for step in self.steps], "layer", "layer_class", "direction", "source"),
            **fields_of(costs, "cycles", "cause", "active_tiles", "tile_balance"),
            "parent": [context.path.get(step.id, "") for step in self.steps],
            "to_ipu": [step.to_ipu if isinstance(step, GlobalExchange) else -1 for step in self.steps],
            "stage": self.stage_of_step,
            "times": times,
        }
        known["total_cycles"] = np.array(known["cycles"], np.int64) * np.array(times, np.int64)
        return late_table("steps", {**known, **self.numbered.columns("steps")})

    @cached_property
    def stage_of_step(self) -> list[int]:
        """The stage of each step, -1 without one."""
        return [self.context.stage_of(step) for step in self.steps]

    def temporaries(self) -> Temporaries:
        """The temporaries that steps write, by the program's own vectors."""
        columns = columns_of(self.program)
        return Temporaries(
            temporary=np.array([each.kind == "temporary" for each in self.program.variables], bool),
            index=columns.vector,
            vectors=columns.vectors,
            accesses=self.accesses(),
            intervals=self.intervals(),
        )

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
        always = [int(self.liveness.always_live_bytes(ipu).sum()) for ipu in range(self.program.ipus)]
        lengths = [len(places) for places in self.liveness.timelines]
        return late_table(
            "liveness",
            {
                **{name: partial(self.timeline.__getitem__, name) for name in SCHEMA["timeline"]},
                "always_live_bytes": partial(_repeated, always, lengths),
                **{name: partial(_curve, self.liveness, name) for name in _CURVES},
            },
        )

    def formulas(self) -> set[str]:
        """The formulas of all terms of costs, and of what these are sums of."""
        costs = {id(found.cost): found.cost for found in self.trace.steps.values()}
        return {each.formula for found in costs.values() for part in found.terms for each in (part, *part.of)}

    def breakdown(self) -> Table:
        rows = [
            (ipu, cause, cycles)
            for ipu, found in enumerate(self.trace.cycle_breakdown)
            for cause, cycles in found.items()
            if cycles
        ]
        return columns_from("cycle_breakdown", ("ipu", "cause", "cycles"), rows)

    def stages(self) -> Table:
        """A row per stage; a stage's idle cycles and memory are those of its IPU."""
        names = ("stage", "ipu", "cause", "total_cycles")
        stage, ipu, cause, cycles = (self.step_rows[name].tolist() for name in names)
        spent: dict[tuple[int, str], int] = {}
        for key, taken in zip(zip(stage, cause, strict=True), cycles, strict=True):
            spent[key] = spent.get(key, 0) + taken
        ipus = dict(zip(reversed(stage), reversed(ipu), strict=True))  # of the first step of each stage
        stash: Counter[int] = Counter()
        for own in self.program.variables:
            if own.kind == "stash":
                stash[own.ipu] += int(own.bytes_per_tile.sum())
        rows = [self._stage(each, ipus[each], spent, stash) for each in sorted(ipus) if each >= 0]
        return table_from_rows("stages", rows)

    def _stage(
        self, stage: int, ipu: int, spent: Mapping[tuple[int, str], int], stash: Mapping[int, int]
    ) -> dict[str, Any]:
        waited = [cycles for cause, cycles in self.trace.cycle_breakdown[ipu].items() if cause.startswith("idle_")]
        return {
            "stage": stage,
            "ipu": ipu,
            "compute_cycles": spent.get((stage, "compute"), 0),
            "exchange_cycles": spent.get((stage, "exchange"), 0),
            "copy_cycles": sum(spent.get((stage, cause), 0) for cause in ("host", "inter_ipu", "collective")),
            "idle_cycles": sum(waited),
            "memory_bytes": int((self.liveness.always_live_bytes(ipu) + self.liveness.peak_bytes(ipu)).sum()),
            "stash_bytes": stash[ipu],
        }


def _described(row: Operator, options: Options) -> dict[str, Any]:
    """An operator with the temporary bytes that the options allow it; 0 where none limits them."""
    found = dict(zip(_SAID, _said(row), strict=True))
    found["bound_bytes"] = row.bound(options) if row.bound else 0
    return found


_SAID = ("id", "name", "layer", "direction", "op", "flops", "plan", "modelled", "plan_cycles", "body", "repeated")
_said = attrgetter(*_SAID)


def _kept(made: IntArray) -> IntArray:
    """An array that was made here and belongs to nobody else, as a column that is not copied again."""
    found = np.ascontiguousarray(made, dtype=np.int64)
    found.setflags(write=False)
    return found


_CURVES = ("live_bytes", "worst_tile", "worst_tile_bytes")


def _curve(liveness: Liveness, name: str) -> IntArray:
    return _joined([getattr(liveness.step_peaks(ipu), name) for ipu in range(liveness.program.ipus)])


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return _kept(np.concatenate(parts))


def _repeated(values: Sequence[int], lengths: Sequence[int]) -> IntArray:
    return _kept(np.repeat(values, lengths))


def _numbered(lengths: Sequence[int]) -> IntArray:
    return _repeated(range(len(lengths)), lengths)


def _counted(lengths: Sequence[int]) -> IntArray:
    numbers = np.arange(max(lengths, default=0))
    return _joined([numbers[:length] for length in lengths])


def _addresses(allocation: Allocation) -> tuple[Table, Any, Any]:
    """Raw rows, and int64[ipus, tiles] of the tile whose rows hold and of the bytes with gaps (-1 not yet known)."""
    made = {(tile.ipu, tile.tile): tile for tile in allocation.allocated}
    classes = np.stack(allocation.classes)
    with_gaps = np.full(classes.shape, -1, dtype=np.int64)
    for (ipu, first), tile in made.items():
        with_gaps[ipu, classes[ipu] == first] = tile.total_with_gaps_bytes
    blocks = [tile.blocks for tile in made.values()]
    lengths = [len(each) for each in blocks]
    columns = {
        "ipu": np.repeat([ipu for ipu, _ in made], lengths),
        "tile": np.repeat([tile for _, tile in made], lengths),
        "variable": np.concatenate([each.variable for each in blocks]),
        "label": [label for each in blocks for label in each.labels],
        "category": [category for each in blocks for category in each.categories],
        "address": np.concatenate([each.address for each in blocks]),
        "bytes": np.concatenate([each.size_bytes for each in blocks]),
    }
    return table("allocation", columns), classes, with_gaps
