"""What runs when on each IPU: windows of time at the detail that can be drawn, from the whole call to single tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from workbench.base.causes import CAUSE_WORDS
from workbench.base.units import cycles_text, percent_text, things_text
from workbench.base.whole import whole
from workbench.profiler.places import ipu_of
from workbench.profiler.profile import Profile, replicas_text
from workbench.profiler.registry import report
from workbench.profiler.report import Report, text_table
from workbench.profiler.timeline import Block, BlockCounts, called, told_cut
from workbench.profiler.timeline.counting import mean_within

MAX_RECTANGLES = 20_000
MOST_ROWS = 1 << 24  # of a window that is asked for
LANES = ("phase", "layer", "call")
BANDS = ("tile_from", "tile_to", "cycles_from", "cycles_to", "cause", "step")


class Rectangle(NamedTuple):
    """A stretch of one lane. `step` is -1 where it is not one step alone; `merged` counts the tree nodes in it."""

    lane: str
    name: str
    cause: str
    layer: str
    cycles_from: int
    cycles_to: int
    step: int
    stage: int
    micro_batch: int
    direction: str
    merged: int


@report("trace")
@dataclass(frozen=True, kw_only=True, eq=False)
class Trace(Report):
    """Lanes of an IPU: "phase" (a rectangle per step, by cause), "layer" (neighbouring steps of a layer) and "call"
    (neighbouring steps of a stage, micro-batch and direction)."""

    kinds: ClassVar[tuple[str, ...]] = ("cycles",)
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Trace:
        """The trace of a profile."""
        return cls(profile=profile)

    @cached_property
    def _steps(self) -> dict[int, tuple[Any, ...]]:
        steps = self.profile.tables["steps"]
        names = ("id", "name", "cause", "layer", "direction", "stage")
        return {row[0]: row[1:] for row in zip(*(steps[name].tolist() for name in names), strict=True)}

    def _range(self, ipu: int, first: int | None, last: int | None) -> tuple[int, int]:
        ipu_of(self.profile, ipu)
        begin = max(0, first or 0)
        end = self.profile.total_cycles if last is None else min(last, self.profile.total_cycles)
        return begin, max(begin, end)

    def window(
        self,
        ipu: int = 0,
        cycles_from: int | None = None,
        cycles_to: int | None = None,
        max_rects: int = MAX_RECTANGLES,
    ) -> pd.DataFrame:
        """Rectangles of all lanes that touch a window, at most `max_rects`; columns as in `Rectangle`.

        What is shorter than the window divided by a share of `max_rects` is merged with its neighbours; the cause of
        a merged rectangle is the one with most cycles. Rectangles of a lane never overlap.

        `attrs` of the table say what the limit took: `steps` are the executed ones that touch the window,
        `merged_below_cycles` is the length below which they were merged (0: every step has a phase of its own), and
        `left_out` the rectangles beyond the limit: the last calls first, then layers, then phases.
        """
        first, last = self._range(ipu, cycles_from, cycles_to)
        max_rects = whole("max_rects", max_rects, least=0, most=MOST_ROWS)
        share = max(1, max_rects // len(LANES))
        phases = [self._rectangle(block, ipu) for block in islice(self._walk(first, last, ipu), share + 1)]
        smallest, steps = 1, len(phases)
        if len(phases) > share:
            # Long ones, and merged short ones between them: two kinds, so half a share of each.
            smallest = max(1, 2 * (last - first) // share)
            phases = list(self._phases(ipu, first, last, smallest))
            steps = BlockCounts(self.profile, ipu).within(first, last)
        rows = [*phases, *_joined(phases, "layer", smallest), *_joined(phases, "call", smallest)]
        found = pd.DataFrame(rows[:max_rects], columns=list(Rectangle._fields))
        found.attrs |= {"steps": steps, "merged_below_cycles": smallest if steps > share else 0}
        return told_cut(found, len(rows) - len(found), asked=max_rects != MAX_RECTANGLES, limit="max_rects")

    def _walk(self, first: int, last: int, ipu: int, smallest: int = 0) -> Iterator[Block]:
        return self.profile.timeline.walk(first, last, ipu, smallest=smallest)

    def _phases(self, ipu: int, first: int, last: int, smallest: int) -> Iterator[Rectangle]:
        pending: Rectangle | None = None
        for block in self._walk(first, last, ipu, smallest):
            found = self._rectangle(block, ipu)
            if pending is None:
                pending = found
            elif (
                _short(pending, smallest)
                and _short(found, smallest)
                and found.cycles_from - pending.cycles_to < smallest
            ):
                pending = _merged(pending, found)
            else:
                yield pending
                pending = found
        if pending is not None:
            yield pending

    def _rectangle(self, block: Block, ipu: int) -> Rectangle:
        node, start, context = block
        longest = max(node.children, key=lambda child: child.cycles) if node.kind == "run" else node
        known = self._steps.get(longest.step, (node.name, "", "", "", -1))
        name, cause, layer, direction, stage = known
        inside = called(node, context)
        if node.step < 0:
            busy = {key[1]: cycles for key, cycles in node.totals.items() if key[0] == ipu}
            cause = max(busy, key=lambda key: busy[key], default="")
        return Rectangle(
            lane="phase",
            name=inside.name_of(name, layer),
            cause=cause,
            layer=inside.layer_of(layer),
            cycles_from=start,
            cycles_to=block.end,
            step=node.step,
            stage=inside.stage if inside.stage >= 0 else stage,
            micro_batch=inside.micro_batch,
            direction=inside.direction_of(direction),
            merged=max(1, len(node.children)) * (node.times if node.kind == "run" else 1),
        )

    def tiles(
        self,
        ipu: int = 0,
        cycles_from: int | None = None,
        cycles_to: int | None = None,
        max_rects: int = MAX_RECTANGLES,
    ) -> pd.DataFrame:
        """Bands of single tiles in a window of few steps: `tile_from, tile_to` (both included)`, cycles_from,
        cycles_to, cause, step`.

        A tile of a compute step is busy for its own cycles, then waits; of an exchange for as long as it sends or
        receives at its rate. When there are more than `max_rects`, neighbouring tiles share a band of their average.

        `attrs["left_out"]` says how many executed steps of the window, the last ones, have not all their bands.
        """
        first, last = self._range(ipu, cycles_from, cycles_to)
        max_rects = whole("max_rects", max_rects, least=0, most=MOST_ROWS)
        blocks = list(islice(self._walk(first, last, ipu), max_rects))
        share = max(1, max_rects // max(1, len(blocks)))
        rows: list[tuple[Any, ...]] = []
        whole_ones = 0
        for block in blocks:
            rows += self._bands(block, share)
            whole_ones += len(rows) <= max_rects
        found = pd.DataFrame(rows[:max_rects], columns=list(BANDS))
        found.attrs["left_out"] = BlockCounts(self.profile, ipu).within(first, last) - whole_ones
        return found

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {step: row for row, step in enumerate(self.profile.tables["steps"]["id"].tolist())}

    def _bands(self, block: Block, share: int) -> list[tuple[Any, ...]]:
        steps = self.profile.tables["steps"]
        row = self._rows[block.node.step]
        cause = str(steps["cause"][row])
        busy = self.profile.vector(steps["cycles_index"][row])
        if cause == "sync" or not busy.any():
            return [(0, len(busy) - 1, block.start, block.end, cause, block.node.step)]
        edges = np.flatnonzero(np.diff(busy)) + 1
        starts = np.concatenate(([0], edges))
        if len(starts) > share:
            starts = np.unique(np.linspace(0, len(busy), share, endpoint=False, dtype=np.int64))
        ends = np.append(starts[1:], len(busy))
        average = np.add.reduceat(busy, starts) // (ends - starts)
        return [
            (low, high - 1, block.start, min(block.end, block.start + cycles), cause, block.node.step)
            for low, high, cycles in zip(starts.tolist(), ends.tolist(), average.tolist(), strict=True)
            if cycles
        ]

    def proportions(self, ipu: int = 0, cycles_from: int | None = None, cycles_to: int | None = None) -> dict[str, int]:
        """Cycles by cause inside a window, exact; they sum to its length."""
        first, last = self._range(ipu, cycles_from, cycles_to)
        return self._by_ipu(first, last)[ipu]

    def _by_ipu(self, first: int, last: int) -> list[dict[str, int]]:
        """Cycles by cause of each IPU inside a window."""
        found: list[dict[str, int]] = [{} for _ in range(self.profile.ipus)]
        for (ipu, cause), cycles in self.profile.timeline.totals(first, last).items():
            found[ipu][cause] = cycles
        return found

    def tile_balance(self, ipu: int = 0, cycles_from: int | None = None, cycles_to: int | None = None) -> float:
        """Average over the compute steps of a window of the mean of their active tiles over the slowest, by cycles.

        Tiles that have nothing to do in a step do not count in it: `active_tiles` says how many do. 1.0 without steps.
        """
        found = self._of_compute("tile_balance", ipu, cycles_from, cycles_to)
        return 1.0 if found is None else found

    def active_tiles(self, ipu: int = 0, cycles_from: int | None = None, cycles_to: int | None = None) -> float:
        """Average over the compute steps of a window of how many tiles have something to do, by cycles; 0.0 without."""
        found = self._of_compute("active_tiles", ipu, cycles_from, cycles_to)
        return 0.0 if found is None else found

    def _of_compute(self, column: str, ipu: int, cycles_from: int | None, cycles_to: int | None) -> float | None:
        """The mean of a column over the compute steps of a window, by cycles; None where there are none."""
        first, last = self._range(ipu, cycles_from, cycles_to)
        steps = self.profile.tables["steps"]
        if (first, last) == (0, self.profile.total_cycles):
            chosen = (steps["cause"] == "compute") & (steps["ipu"] == ipu) & (steps["total_cycles"] > 0)
            cycles = steps["total_cycles"][chosen]
            return float(np.average(steps[column][chosen], weights=cycles)) if len(cycles) else None
        compute = steps["cause"] == "compute"
        values = dict(zip(steps["id"][compute].tolist(), steps[column][compute].tolist(), strict=True))
        return mean_within(self.profile.timeline, (first, last), ipu, values)

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: total cycles and the cycles by cause of every IPU."""
        breakdown = self._by_ipu(0, self.profile.total_cycles)
        return {"total_cycles": self.profile.total_cycles, "ipus": self.profile.ipus, "by_cause": breakdown}

    @property
    def sentence(self) -> str:
        """The length and the causes, of all IPUs together."""
        data = self.data
        sums: dict[str, int] = {}
        for found in data["by_cause"]:
            for cause, cycles in found.items():
                sums[cause] = sums.get(cause, 0) + cycles
        whole = max(1, data["total_cycles"] * data["ipus"])
        shown = ", ".join(
            f"{CAUSE_WORDS[cause]} {percent_text(cycles / whole)}"
            for cause, cycles in sorted(sums.items(), key=lambda item: -item[1])
        )
        ipus = things_text(data["ipus"], "IPU") + replicas_text(self.profile.meta)
        return f"Modelled trace of {cycles_text(data['total_cycles'])} on {ipus}: {shown}"

    def to_pandas(self) -> pd.DataFrame:
        """`ipu, cause, cycles, fraction`."""
        whole = max(1, self.profile.total_cycles)
        rows = [
            (ipu, cause, cycles, cycles / whole)
            for ipu, found in enumerate(self.data["by_cause"])
            for cause, cycles in sorted(found.items(), key=lambda item: -item[1])
        ]
        return pd.DataFrame(rows, columns=["ipu", "cause", "cycles", "fraction"])

    def to_text(self) -> str:
        """The sentence and the table, causes in the words of the sentence."""
        text = f"{self.sentence}\n\n{text_table(self.to_pandas().replace({'cause': dict(CAUSE_WORDS)}))}"
        return "\n".join([text, *self.errors])


def _short(rectangle: Rectangle, smallest: int) -> bool:
    return rectangle.cycles_to - rectangle.cycles_from < smallest


def _merged(left: Rectangle, right: Rectangle) -> Rectangle:
    longer = left if left.cycles_to - left.cycles_from >= right.cycles_to - right.cycles_from else right
    return longer._replace(
        cycles_from=left.cycles_from, cycles_to=right.cycles_to, step=-1, merged=left.merged + right.merged
    )


def _joined(phases: list[Rectangle], lane: str, smallest: int) -> Iterator[Rectangle]:
    """Neighbours of one layer, or of one call, as one rectangle; gaps shorter than `smallest` do not part them."""
    pending: Rectangle | None = None
    for phase in phases:
        found = _layer(phase) if lane == "layer" else _call(phase)
        if pending is not None and found is not None and _continues(pending, found, smallest):
            pending = pending._replace(cycles_to=found.cycles_to, merged=pending.merged + found.merged)
            continue
        if pending is not None:
            yield pending
        pending = found
    if pending is not None:
        yield pending


def _continues(left: Rectangle, right: Rectangle, smallest: int) -> bool:
    together = ("name", "direction", "stage", "micro_batch")
    same = all(getattr(left, field) == getattr(right, field) for field in together)
    return same and right.cycles_from - left.cycles_to < smallest


def _layer(phase: Rectangle) -> Rectangle | None:
    return phase._replace(lane="layer", name=phase.layer, step=-1) if phase.layer else None


def _call(phase: Rectangle) -> Rectangle | None:
    if phase.stage < 0 and phase.micro_batch < 0:
        return None
    stage = f"stage {phase.stage}" if phase.stage >= 0 else ""
    micro_batch = f"micro-batch {phase.micro_batch}" if phase.micro_batch >= 0 else ""
    name = " ".join(part for part in (stage, micro_batch, phase.direction) if part)
    return phase._replace(lane="call", name=name, layer="", step=-1)
