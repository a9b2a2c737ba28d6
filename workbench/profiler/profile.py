"""The profile of one compiled program: immutable data, with every table and report derived from it when asked for.

A profile is readable without the engine. It holds the addresses of the tiles that decide the verdict; those of another
tile are worked out when asked for, by the engine's placement, from the sizes and lifetimes the profile holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from workbench.base.arrays import IntArray
from workbench.errors import WorkbenchError
from workbench.profiler import tables
from workbench.profiler.memory import live_bytes
from workbench.profiler.memory.addresses import Addresses, Placer, Placing, bytes_by_category
from workbench.profiler.report import face, plain_html
from workbench.profiler.schema import MEMORY_CATEGORIES, Column, Stored, Table
from workbench.profiler.timeline import Timeline, blocks, timeline_of

if TYPE_CHECKING:
    from workbench.profiler.advice.explain import Explanation
    from workbench.profiler.reports.insights import Insights
    from workbench.profiler.reports.liveness_view import LivenessView
    from workbench.profiler.reports.memory import Memory
    from workbench.profiler.reports.operations import Operations
    from workbench.profiler.reports.pipeline import Pipeline
    from workbench.profiler.reports.program_tree import ProgramTree
    from workbench.profiler.reports.roofline import Roofline
    from workbench.profiler.reports.source import Source
    from workbench.profiler.reports.summary import Summary
    from workbench.profiler.reports.tile_map import TileMap
    from workbench.profiler.reports.trace import Trace
    from workbench.profiler.reports.xray import Xray


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
class Profile:
    """Memory, time and structure of one compiled program.

    `meta` is JSON data, `tables` columns by table and name, `arrays` bulk numbers: `per_tile` int64[k, tiles] holds
    each distinct per-tile vector once (row 0 is zero) and `*_index` columns name its rows; the rest of `arrays` is
    int64[ipus, tiles]. `profiler/schema.py` lists them. `placing` works out the addresses of tiles that have none.
    """

    meta: Mapping[str, Any]
    tables: Mapping[str, Table]
    arrays: Mapping[str, IntArray]
    placing: Placing = _no_placing

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
        """A row per static program step; `cycles` are of one execution, `total_cycles` of all `times`."""
        return self._steps.copy(deep=False)

    @cached_property
    def _steps(self) -> pd.DataFrame:
        return tables.frame(self, "steps", tables.STEP_COLUMNS)

    @property
    def liveness(self) -> pd.DataFrame:
        """A row per place in an IPU's program: bytes over its tiles, and the fullest tile there."""
        return self._liveness.copy(deep=False)

    @cached_property
    def _liveness(self) -> pd.DataFrame:
        return tables.frame(self, "liveness")

    @cached_property
    def operators(self) -> pd.DataFrame:
        """A row per operator: flops, cycles, utilisation of the peak rate, code and temporary bytes, plan, and the name
        of the body that it shares with equal operators, whose cycles count by their runs of it (empty: its own steps).
        A body's code counts for each of them, though it is kept once."""
        return tables.frame(self, "operators")

    @cached_property
    def stages(self) -> pd.DataFrame:
        """A row per pipeline stage: cycles by cause over one call, bytes of memory and stash."""
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
        return self.tables[table][name]

    def vector(self, index: int) -> IntArray:
        """The interned per-tile vector of an `*_index` column: int64[tiles]."""
        found: IntArray = self.arrays["per_tile"][int(index)]
        return found

    # Queries

    @cached_property
    def addresses(self) -> Addresses:
        """Where things lie on each tile."""
        return Addresses(self, self.placing)

    @cached_property
    def timeline(self) -> Timeline:
        """The executed program with its costs, from which windows are unrolled."""
        return timeline_of(self)

    def blocks(
        self,
        ipu: int | None = None,
        cycles_from: int | None = None,
        cycles_to: int | None = None,
        max_rows: int = 10_000,
    ) -> pd.DataFrame:
        """Executed blocks that overlap a window of cycles, in order of time, at most `max_rows`.

        Columns: step, ipu, replica, stage, micro_batch, iteration, direction, layer, cycles_from, cycles_to, cause.
        """
        return blocks(self, ipu, cycles_from, cycles_to, max_rows)

    def live_variables(self, step: int, ipu: int | None = None, tile: int | None = None) -> pd.DataFrame:
        """Variables live at a program step, those that come and go first, then by bytes.

        `bytes` counts the chosen tile, else the chosen IPU, else all IPUs of the step. A step that runs at several
        places shows the place with most live bytes.
        """
        return live_bytes.live_variables(self, step, ipu, tile)

    def explain(
        self,
        *,
        tile: int | None = None,
        step: int | None = None,
        variable: str | int | None = None,
        operator: str | None = None,
        ipu: int | None = None,
    ) -> Explanation:
        """Where a number comes from: value, formula with its inputs filled in, source, typical error and parts.

        Give a tile (its bytes), a step (its cycles), a tile and a step (bytes live there), a variable or an operator.
        """
        from workbench.profiler.advice.explain import explain

        return explain(self, tile=tile, step=step, variable=variable, operator=operator, ipu=ipu)

    # Reports

    @cached_property
    def summary(self) -> Summary:
        """Verdict first, then target, time, assumptions."""
        from workbench.profiler.reports.summary import Summary

        return Summary.from_profile(self)

    @cached_property
    def insights(self) -> Insights:
        """The largest things, and tips."""
        from workbench.profiler.reports.insights import Insights

        return Insights.from_profile(self)

    @cached_property
    def memory(self) -> Memory:
        """Bytes over tiles by category."""
        from workbench.profiler.reports.memory import Memory

        return Memory.from_profile(self)

    @cached_property
    def tile_map(self) -> TileMap:
        """Bytes on the floor plan."""
        from workbench.profiler.reports.tile_map import TileMap

        return TileMap.from_profile(self)

    @cached_property
    def liveness_view(self) -> LivenessView:
        """Live bytes over the steps of the program."""
        from workbench.profiler.reports.liveness_view import LivenessView

        return LivenessView.from_profile(self)

    @cached_property
    def xray(self) -> Xray:
        """Address by step of the fullest tile; `.xray.of(ipu, tile)` for another."""
        from workbench.profiler.reports.xray import Xray

        return Xray.from_profile(self)

    @cached_property
    def trace(self) -> Trace:
        """What runs when."""
        from workbench.profiler.reports.trace import Trace

        return Trace.from_profile(self)

    @cached_property
    def pipeline(self) -> Pipeline:
        """Stages, micro-batches and bubbles."""
        from workbench.profiler.reports.pipeline import Pipeline

        return Pipeline.from_profile(self)

    @cached_property
    def program_tree(self) -> ProgramTree:
        """The control program."""
        from workbench.profiler.reports.program_tree import ProgramTree

        return ProgramTree.from_profile(self)

    @cached_property
    def operations(self) -> Operations:
        """A row per operator and per layer."""
        from workbench.profiler.reports.operations import Operations

        return Operations.from_profile(self)

    @cached_property
    def roofline(self) -> Roofline:
        """Operators under the ceilings of the machine."""
        from workbench.profiler.reports.roofline import Roofline

        return Roofline.from_profile(self)

    @cached_property
    def source(self) -> Source:
        """Cycles and bytes per line of the user's code."""
        from workbench.profiler.reports.source import Source

        return Source.from_profile(self)

    # Out

    def save(self, path: str | Path) -> Path:
        """Write the profile to one file; an interrupted save leaves the old file whole."""
        from workbench.profiler.storage import save_profile

        return save_profile(self, path)

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write every table as a CSV file into `folder`; returns the files."""
        from workbench.profiler.export.csv import to_csv

        return to_csv(self, folder)

    def to_chrome_trace(self, path: str | Path) -> list[Path]:
        """Write the executed blocks as Chrome trace JSON, a file per 500,000 events; returns the files."""
        from workbench.profiler.export.chrome_trace import to_chrome_trace

        return to_chrome_trace(self, path)

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained HTML file."""
        return Path(face("html").write(self, Path(path)))

    def to_json(self) -> str:
        """The verdict and the headline numbers as JSON."""
        return json.dumps(self.summary.data, indent=2)

    def __str__(self) -> str:
        return self.summary.to_text()

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {self.summary.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            page = face("html")
        except ImportError:
            return {"text/plain": str(self), "text/html": plain_html(self.summary)}
        return dict(page.mimebundle(self))
