"""The profile of one compiled program: immutable data, with every table and report derived from it when asked for.

A profile is readable without the engine. It holds the addresses of the tiles that decide the verdict; those of another
tile are worked out when asked for, by the engine's placement, from the sizes and lifetimes the profile holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.categories import MEMORY_CATEGORIES
from workbench.base.checked import bound
from workbench.base.units import count_text, things_text
from workbench.base.whole import whole
from workbench.errors import InputError, WorkbenchError
from workbench.profiler import tables
from workbench.profiler.memory import live_bytes
from workbench.profiler.memory.addresses import Addresses, Placer, Placing, bytes_by_category
from workbench.profiler.offers import Offers
from workbench.profiler.operators.callers import StepsByCaller
from workbench.profiler.operators.rates import measured
from workbench.profiler.operators.table import OperatorTable
from workbench.profiler.places import cycle_of, ipu_of, step_of, tile_of
from workbench.profiler.registry import exports
from workbench.profiler.report import face, plain_html
from workbench.profiler.schema import Column, Stored, Table
from workbench.profiler.timeline import MOST_ROWS, Timeline, blocks, told_cut
from workbench.profiler.timeline.builder import Course
from workbench.profiler.timeline.tree import ControlTree


class Peak(NamedTuple):
    """Where and when memory is fullest: IPU, tile of that IPU, id of the program step, bytes in use."""

    ipu: int
    tile: int
    step: int
    bytes: int


def _no_placing(profile: Stored, ipu: int) -> Placer:
    """Of a profile made by hand: it has to hold the addresses of all its tiles."""
    raise WorkbenchError(
        f"the profile {profile.meta['name']!r} does not hold the addresses of all tiles of IPU {ipu}",
        expected="`placing`, as profiles that were compiled or read from a file have it",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Profile(Offers):
    """Memory, time and structure of one compiled program.

    `meta` is JSON data, `tables` columns by table and name, `arrays` bulk numbers: `per_tile` int64[k, tiles] holds
    each distinct per-tile vector once (row 0 is zero) and `*_index` columns name its rows; the rest of `arrays` is
    int64[ipus, tiles]. `profiler/schema.py` lists them. `placing` works out the addresses of tiles that have none.
    """

    meta: Mapping[str, Any]
    tables: Mapping[str, Table]
    arrays: Mapping[str, IntArray]
    placing: Placing = _no_placing

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and sent to other processes: not what was worked out here, which is worked out again there."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    # Verdict

    @property
    def name(self) -> str:
        """What was compiled, in the user's words."""
        return str(self.meta["name"])

    @property
    def fits(self) -> bool:
        """Whether every tile's memory was placed inside its regions."""
        return bool(self.meta["verdict"]["fits"])

    @property
    def margin_bytes(self) -> int:
        """Bytes of a tile less `max_tile_bytes`; negative when over."""
        return int(self.meta["target"]["bytes_per_tile"]) - self.max_tile_bytes

    @property
    def max_tile_bytes(self) -> int:
        """The largest `total_with_gaps_bytes` of all tiles."""
        return int(self.meta["verdict"]["max_tile_bytes"])

    @property
    def peak(self) -> Peak:
        """The fullest tile, the step at which most is live on it, and its bytes with gaps."""
        found = self.meta["verdict"]["peak"]
        return Peak(int(found["ipu"]), int(found["tile"]), int(found["step"]), int(found["bytes"]))

    @cached_property
    def fragmentation(self) -> float:
        """Gaps as a fraction of the bytes in use with gaps, on the fullest tile (0 to 1)."""
        rows, with_gaps = self.addresses.tile(self.peak.ipu, self.peak.tile)
        return 1.0 - sum(bytes_by_category(rows).values()) / with_gaps if with_gaps else 0.0

    @property
    def target(self) -> Mapping[str, Any]:
        """The machine: name, architecture, tiles_per_ipu, bytes_per_tile, clock_hz, what_if and the rest."""
        found: Mapping[str, Any] = self.meta["target"]
        return found

    @property
    def config(self) -> Mapping[str, Any]:
        """Every option by dotted name with the value it was compiled with."""
        found: Mapping[str, Any] = self.meta["config"]
        return found

    @property
    def assumptions(self) -> list[str]:
        """What was assumed where nothing was said."""
        return [str(text) for text in self.meta["assumptions"]]

    # Time

    @property
    def ipus(self) -> int:
        """IPUs of one replica."""
        return int(self.meta["ipus"])

    @property
    def total_cycles(self) -> int:
        """Cycles of one call of the program: one weight update, or one inference batch."""
        return int(self.meta["total_cycles"])

    @property
    def seconds(self) -> float:
        """`total_cycles` at the target's clock."""
        return self.total_cycles / float(self.target["clock_hz"])

    @property
    def samples_per_second(self) -> float:
        """Samples of one call, over all replicas, per second; 0 when the batch size is not known."""
        samples = int(self.meta.get("samples_per_call") or 0)
        return samples / self.seconds if self.seconds else 0.0

    # Tables

    @property
    def memory_categories(self) -> tuple[str, ...]:
        """The byte columns of `.tiles`, in the order in which a shared address is counted."""
        return MEMORY_CATEGORIES

    @property
    def tiles(self) -> pd.DataFrame:
        """A row per tile: bytes by category, which sum to `total_bytes`, and the four memory words of the tile."""
        return self._tiles.copy(deep=False)

    @cached_property
    def _tiles(self) -> pd.DataFrame:
        return tables.tiles(self, [self.addresses.sums(ipu) for ipu in range(self.ipus)])

    @property
    def variables(self) -> pd.DataFrame:
        """A row per variable: name, layer, kind, dtype, shape, bytes, always_live, tiles, first_step, last_step."""
        return self._variables.copy(deep=False)

    @cached_property
    def _variables(self) -> pd.DataFrame:
        return tables.variables(self)

    @property
    def steps(self) -> pd.DataFrame:
        """A row per static program step; `cycles` are of one execution, `total_cycles` of all `times`.

        A step of a body that several layers or operators share, or that is run again to compute something anew, has a
        row for each of its `callers` (a column: how many there are), with that caller's layer, direction, operator,
        source and part of its runs. `steps.drop_duplicates("id")` has each step once. `source` is the line at which the
        step's operation was called, or its layer made ("model.py:12").
        """
        return self._steps.copy(deep=False)

    @cached_property
    def _steps(self) -> pd.DataFrame:
        known = self.steps_by_caller
        lines = tables.source_lines(self.meta.get("layer_lines", {}), known.layer, known.source)
        return tables.steps(self, known.row, {**known.columns, "source": lines})

    @cached_property
    def steps_by_caller(self) -> StepsByCaller:
        """The steps with all for whom they run, as columns."""
        operators = self.tables["operators"]
        if isinstance(operators, OperatorTable) and operators.is_of(self):
            return operators.steps_by_caller
        return StepsByCaller.of_profile(self)

    @property
    def liveness(self) -> pd.DataFrame:
        """A row per place in an IPU's program: bytes over its tiles, and the fullest tile there."""
        return self._liveness.copy(deep=False)

    @cached_property
    def _liveness(self) -> pd.DataFrame:
        return tables.frame(self, "liveness")

    @cached_property
    def operators(self) -> pd.DataFrame:
        """A row per operator: flops, cycles, utilisation, code and temporary bytes, plan, and the name of the body that
        it shares with equal operators, whose cycles count by their runs of it (empty: its own steps). `utilisation` is
        of the modelled peak rate of products in `type`, the type that the operator computes in: "float32", "float16"
        (with half partials) or, where the target multiplies them as they are, "float8"; "" and 0 of integers alone.
        A body's code counts for each of them, though it is kept once. What runs again to compute something anew has a
        row of its own, of direction `recompute`, with the cycles and flops of those runs.

        `plan_cycles` is what the planner charged for the plan it chose, over all runs; 0: nothing was planned by
        cycles, or the file is of a version before. `cycles` is what the steps then take. They differ because the
        planner counts what PopLibs' planner counts, phase by phase on the fullest tile (bytes exchanged, vertices,
        what is rearranged), without launches, synchronisation and copies on a tile, and before it is known where
        operands lie."""
        found = tables.frame(self, "operators")
        return measured(found, self.steps_by_caller, self.tables, self.target)

    @cached_property
    def stages(self) -> pd.DataFrame:
        """A row per pipeline stage: cycles by cause over one call, bytes of memory and stash.

        `copy_cycles` are of copies with the host, of collectives, and of copies to other IPUs, each counted where it is
        sent from. Synchronisation has no column: of an IPU's whole call, both ends of a copy included, see
        `.cycle_breakdown`. `idle_cycles`, `memory_bytes` and `stash_bytes` are those of the stage's IPU.
        """
        return tables.frame(self, "stages")

    @cached_property
    def cycle_breakdown(self) -> pd.DataFrame:
        """Cycles by IPU and cause; the causes of one IPU sum to `total_cycles`."""
        return tables.frame(self, "cycle_breakdown")

    @cached_property
    def unmodelled(self) -> pd.DataFrame:
        """What went through the generic rule: primitive, count, layer."""
        return tables.frame(self, "unmodelled")

    def column(self, table: str, name: str) -> Column:
        """One raw column."""
        known = self.tables.get(table) if isinstance(table, str) else None
        if known is None or not isinstance(name, str) or name not in known:
            names = ", ".join(self.tables if known is None else known)
            raise InputError(f"a profile has no column {name!r} in a table {table!r}", expected=f"one of: {names}")
        return known[name]

    def vector(self, index: int) -> IntArray:
        """The interned per-tile vector of an `*_index` column: int64[tiles]."""
        vectors = self.arrays["per_tile"]
        found: IntArray = vectors[whole("index", index, least=0, most=len(vectors) - 1)]
        return found

    # Queries

    @cached_property
    def addresses(self) -> Addresses:
        """Where things lie on each tile."""
        return Addresses(self, self.placing)

    @cached_property
    def lifetimes(self) -> live_bytes.Lifetimes:
        """The lifetimes by variable."""
        return live_bytes.Lifetimes.of(self)

    @cached_property
    def control(self) -> ControlTree:
        """The control tree of the program: its entry, and the functions that calls run."""
        return self._course.control

    @cached_property
    def timeline(self) -> Timeline:
        """The executed program with its costs, from which windows are unrolled."""
        return self._course.timeline

    @cached_property
    def _course(self) -> Course:
        """What the program executes; other profiles of it have the same."""
        return Course(meta=self.meta, tables=self.tables, arrays=self.arrays)

    @bound
    def blocks(
        self,
        ipu: int | None = None,
        cycles_from: int | None = None,
        cycles_to: int | None = None,
        max_rows: int = MOST_ROWS,
    ) -> pd.DataFrame:
        """Executed blocks that overlap a window of cycles, in order of time, at most `max_rows`.

        `attrs["left_out"]` of the table says how many more there are; beyond the 10,000 of the default a warning, too.
        Columns: step, ipu, replica, stage, micro_batch, iteration, direction, layer, cycles_from, cycles_to, cause.
        """
        window = (cycle_of("cycles_from", cycles_from), cycle_of("cycles_to", cycles_to))
        if None not in window and window[0] > window[1]:
            raise InputError(
                f"cycles_from is {cycles_from} and cycles_to {cycles_to}",
                expected="a window that ends where it begins or later",
            )
        ipu = None if ipu is None else ipu_of(self, ipu)
        found, left = blocks(self, ipu, *window, whole("max_rows", max_rows, least=0))
        return told_cut(found, left, asked=max_rows != MOST_ROWS)

    @bound
    def live_variables(self, step: int, ipu: int | None = None, tile: int | None = None) -> pd.DataFrame:
        """Variables live at a program step, those that come and go first, then by bytes.

        `bytes` counts the chosen tile, else the chosen IPU, else all IPUs of the step. A step that runs at several
        places shows the place with most live bytes.
        """
        ipu = None if ipu is None else ipu_of(self, ipu)
        tile = None if tile is None else tile_of(self, tile)
        return live_bytes.live_variables(self, step_of(self, step), ipu, tile)

    # Out

    def to(self, name: str, *arguments: Any, **options: Any) -> Any:
        """An export by name: `profile.to("csv", folder)` is `profile.to_csv(folder)`; with its own arguments."""
        return exports.get(name)(self, *arguments, **options)

    def __str__(self) -> str:
        return str(self.summary)

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {self.summary.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            page = face("html")
        except ImportError:
            return {"text/plain": str(self), "text/html": plain_html(self.summary)}
        return dict(page.mimebundle(self))


def run_text(meta: Mapping[str, Any]) -> str:
    """What a call of the program does, `"training, batch size 32"`; of a function that nobody says the samples of, its
    mode alone."""
    known = meta["mode"] != "function" or meta.get("samples_per_call")
    return f"{meta['mode']}, batch size {meta['batch_size']}" if known else str(meta["mode"])


def call_text(meta: Mapping[str, Any]) -> str:
    """What one call of the program is: `"weight update"`, `"execution of 3 weight updates"`, `"call"`; where the
    optimizer makes one update of the gradients of several, `"call, the dearest of 4 to a weight update"`."""
    updates, calls = int(meta["pipeline"].get("updates", 1)), int(meta.get("calls_per_update", 1))
    if meta["mode"] != "training":
        return "call"
    if calls > 1:
        return f"call, the dearest of {count_text(calls)} to a weight update"
    return f"execution of {count_text(updates)} weight updates" if updates > 1 else "weight update"


def replicas_text(meta: Mapping[str, Any]) -> str:
    """`" in each of 4 replicas"`, to be said of a program's own IPUs; "" of one replica."""
    replicas = int(meta.get("replicas", 1))
    return f" in each of {replicas:,} replicas" if replicas > 1 else ""


def samples_text(meta: Mapping[str, Any]) -> str:
    """How many samples a call has, and how they come about: `"64 samples to a weight update: batch size 4 × 8
    micro-batches × 2 replicas"`; "" where that is not known."""
    samples, batch = int(meta.get("samples_per_call") or 0), int(meta.get("batch_size") or 0)
    if not samples:
        return ""
    call, calls = call_text(meta).partition(",")[0], int(meta.get("calls_per_update", 1))
    text = f"{things_text(samples, 'sample')} to {'an' if call.startswith('e') else 'a'} {call}"
    updates, replicas = int(meta["pipeline"].get("updates", 1)), int(meta["replicas"])
    micro_batches, left = divmod(samples, max(1, batch * updates * replicas))
    if batch and micro_batches and not left:  # of another number somebody said it
        run = "weight update" if meta["mode"] == "training" else "run"
        times = ((micro_batches, "micro-batch"), (updates, run), (replicas, "replica"))
        text = " × ".join([f"{text}: batch size {batch:,}", *(things_text(*each) for each in times if each[0] > 1)])
    return text if calls == 1 else f"{text}; {calls:,} calls, {samples * calls:,} samples, to a weight update"


def with_meta(profile: Profile, **more: Any) -> Profile:
    """The profile with more in its meta that the program does not follow from: its control tree and its timeline, also
    those that nobody has asked for yet, and the steps by caller are not worked out again."""
    found = replace(profile, meta={**profile.meta, **more})
    known = ("control", "steps_by_caller", "timeline")
    found.__dict__.update((name, profile.__dict__[name]) for name in known if name in profile.__dict__)
    found.__dict__["_course"] = profile._course
    return found
