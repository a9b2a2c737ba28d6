"""What is live when: per IPU a timeline of steps, per variable its intervals, per (tile, step) the live bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from workbench.engine.footprint import Footprint
from workbench.engine.program import TileProgram
from workbench.engine.tileset import IntArray

Interval: TypeAlias = tuple[int, int]
"""First and last timeline position at which something is live, both included."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepPeaks:
    """Per timeline position of one IPU, each int64[positions]: live not-always-live bytes over all tiles together,
    the tile with the most bytes (always-live ones included), and that tile's not-always-live bytes."""

    live_bytes: IntArray
    worst_tile: IntArray
    worst_tile_bytes: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Liveness:
    """Timelines and intervals of a program.

    `timelines[ipu]` is int64[positions]: the step id at each position (static order, calls expanded in place, bodies
    of a `Repeat` once). `intervals[variable id]` are its disjoint ascending intervals in the timeline of its IPU;
    always-live variables and variables that no step touches have none. Byte arrays are computed on
    every call, not kept.
    """

    program: TileProgram
    footprint: Footprint
    timelines: tuple[IntArray, ...]
    intervals: tuple[tuple[Interval, ...], ...]

    def always_live_bytes(self, ipu: int) -> IntArray:
        """Footprint and always-live variables, int64[tiles]."""
        raise NotImplementedError

    def live_bytes(self, ipu: int) -> IntArray:
        """Not-always-live bytes, int64[positions, tiles]."""
        raise NotImplementedError

    def peak_bytes(self, ipu: int) -> IntArray:
        """Largest not-always-live bytes of each tile over the positions, int64[tiles]."""
        raise NotImplementedError

    def peak_positions(self, ipu: int) -> IntArray:
        """First position at which each tile reaches its peak, int64[tiles]; 0 without positions."""
        raise NotImplementedError

    def step_peaks(self, ipu: int) -> StepPeaks:
        """The curve of the liveness report."""
        raise NotImplementedError

    def live_variables(self, ipu: int, position: int) -> tuple[int, ...]:
        """Ids of the not-always-live variables that are live at a position."""
        raise NotImplementedError

    def category_bytes(self, ipu: int, position: int) -> dict[str, IntArray]:
        """Bytes per category at a position, int64[tiles] each: variable kinds and footprint categories.

        Summed from the variables one by one, so that it checks `live_bytes`, which takes another way.
        """
        raise NotImplementedError


def liveness(program: TileProgram, footprint: Footprint) -> Liveness:
    """Timelines and intervals of every variable."""
    raise NotImplementedError
