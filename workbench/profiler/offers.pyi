"""What a profile offers by name: its reports, exports and methods. Written by `make stub`; do not edit."""

from pathlib import Path

from workbench.profiler.advice.explanation import Explanation
from workbench.profiler.reports.chips import Chips
from workbench.profiler.reports.exchange import Exchange
from workbench.profiler.reports.insights import Insights
from workbench.profiler.reports.liveness_view import LivenessView
from workbench.profiler.reports.memory import Memory
from workbench.profiler.reports.operations import Operations
from workbench.profiler.reports.pipeline import Pipeline
from workbench.profiler.reports.playback import Playback
from workbench.profiler.reports.program_tree import ProgramTree
from workbench.profiler.reports.roofline import Roofline
from workbench.profiler.reports.source import Source
from workbench.profiler.reports.summary import Summary
from workbench.profiler.reports.tile_map import TileMap
from workbench.profiler.reports.trace import Trace
from workbench.profiler.reports.xray import Xray

class Offers:
    @property
    def chips(self) -> Chips:
        """All IPUs of a program side by side: how full each one's fullest tile is, and how long it waits."""

    @property
    def exchange(self) -> Exchange:
        """An exchange seen: which tile sends how much to which in one step, in how many pieces, and the cycles that
        takes."""

    @property
    def insights(self) -> Insights:
        """The largest things in a profile, what is live at its peak, and tips that follow from its numbers."""

    @property
    def liveness_view(self) -> LivenessView:
        """Always-live under not-always-live bytes over the steps of one IPU: all its tiles together, or one of them."""

    @property
    def memory(self) -> Memory:
        """Bytes over tiles by category, liveness or region."""

    @property
    def operations(self) -> Operations:
        """A row per operator, and a row per layer with everything that was done for it."""

    @property
    def pipeline(self) -> Pipeline:
        """Stages, micro-batches and directions over time on every IPU, and the bubbles between them by cause."""

    @property
    def playback(self) -> Playback:
        """The program step by step, as the chip runs it: what lies on each tile then, who computes, and what is
        exchanged."""

    @property
    def program_tree(self) -> ProgramTree:
        """The control program as a tree of nodes with their cycles."""

    @property
    def roofline(self) -> Roofline:
        """Operators as points: FLOP per exchanged byte against the achieved rate, under the ceilings of the machine."""

    @property
    def source(self) -> Source:
        """Cycles, peak bytes and code per line of the user's code, and the text that stands there."""

    @property
    def summary(self) -> Summary:
        """The verdict first, then the machine, the time, the program, and what was assumed."""

    @property
    def tile_map(self) -> TileMap:
        """One number per tile on the floor plan: bytes of a category or a variable, or cycles and bytes of a step."""

    @property
    def trace(self) -> Trace:
        """What runs when on each IPU: windows of time at the detail that can be drawn, from the whole call to single
        tiles."""

    @property
    def xray(self) -> Xray:
        """Address by program step of one tile: a rectangle for every life of every variable, regions, gaps and
        capacity."""

    def explain(
        self,
        *,
        tile: int | None = ...,
        step: int | None = ...,
        variable: str | int | None = ...,
        operator: str | None = ...,
        ipu: int | None = ...,
        depth: int | None = ...,
    ) -> Explanation:
        """Where a number comes from: value, formula with its inputs filled in, source, typical error and parts."""

    def save(self, path: str | Path) -> Path:
        """Write the profile to one file; an interrupted save leaves the old file whole. Returns the path."""

    def to_chrome_trace(
        self,
        path: str | Path,
        events_per_file: int = ...,
        *,
        cycles_from: int = ...,
        cycles_to: int | None = ...,
    ) -> list[Path]:
        """Write the executed blocks as Chrome trace JSON, a file per `events_per_file`; returns the files."""

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write every table as a CSV file into `folder`, which is made if need be; returns the files."""

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, whole or not at all; returns the path."""

    def to_json(self, path: str | Path | None = ...) -> str:
        """The verdict and the headline numbers as JSON; with a path also written there, whole or not at all."""

    def to_model_explorer(self, path: str | Path) -> Path:
        """Write the operators as a graph in the JSON of Model Explorer; returns the path."""
