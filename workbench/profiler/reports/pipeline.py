"""Stages, micro-batches and directions over time on every IPU, and the bubbles between them by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.arrays import IntArray
from workbench.base.causes import CAUSES
from workbench.base.text import shown
from workbench.base.units import cycles_text, percent_text, plural, some_text, things_text
from workbench.base.whole import whole
from workbench.errors import InputError
from workbench.profiler.fidelity import TypicalError, as_much
from workbench.profiler.profile import Profile, replicas_text
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records
from workbench.profiler.timeline import told_cut
from workbench.profiler.timeline.executions import Blocks, Executions

MAX_BLOCKS = 20_000
MAX_COLUMNS = 1_000_000
IDLE = tuple(cause for cause in CAUSES if cause.startswith("idle_"))
_WAITING = {
    "idle_fill": "filling",
    "idle_drain": "draining",
    "idle_wait_stage": "waiting for a stage",
    "idle_wait_host": "waiting for the host",
}
BLOCK_COLUMNS = (
    "ipu",
    "replica",
    "stage",
    "micro_batch",
    "direction",
    "layer",
    "name",
    "cycles_from",
    "cycles_to",
)


@report("pipeline")
@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline(Report):
    """Of a program without stages there are no blocks, and the window is the whole call."""

    kinds: ClassVar[tuple[str, ...]] = ("cycles",)
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Pipeline:
        """The pipeline of a profile."""
        return cls(profile=profile)

    @cached_property
    def executions(self) -> Executions:
        """What runs and what waits, as progressions over the whole call."""
        return Executions.from_profile(self.profile)

    @cached_property
    def span(self) -> tuple[int, int]:
        """Cycles [first, last) from the start of the first column to the end of the last; columns are the parts of the
        program where stages run side by side. The whole call when there are none."""
        return self.executions.span("column") or (0, self.profile.total_cycles)

    def blocks(
        self, cycles_from: int | None = None, cycles_to: int | None = None, max_rows: int = MAX_BLOCKS
    ) -> pd.DataFrame:
        """A row per executed stage in a window (default: the pipeline's span), in order of time: `ipu, replica, stage,
        micro_batch` (-1 none)`, direction, layer` (those of the stage)`, name, cycles_from, cycles_to`. Replicas run
        alike: the first is shown. At most `max_rows`: `attrs["left_out"]` of the table says how many more there are,
        and a warning beyond the 20,000 of the default."""
        first, last = self._window(cycles_from, cycles_to)
        max_rows = whole("max_rows", max_rows, least=0)
        count = self.executions.count(first, last, ("stage",))
        last = self.executions.until(first, last, ("stage",), max(max_rows, MAX_BLOCKS) + self.profile.ipus)
        found = self.executions.window(first, last, ("stage",))
        named = self._named(found.take(np.lexsort((found.ipu, found.start))[:max_rows]))
        return told_cut(named, count - len(named), asked=max_rows != MAX_BLOCKS)

    def of_micro_batch(self, number: int) -> pd.DataFrame:
        """All blocks of one micro-batch, on whatever IPU and at whatever time, in order of time; as in `blocks`."""
        plan = self.profile.meta["pipeline"]
        count = int(plan.get("micro_batches", 0))
        if not 0 <= number < count:
            expected = f"0 to {count - 1}" if count else "a program with pipeline stages"
            raise InputError(f"there is no micro-batch {number}", expected=expected)
        found = self.executions.of_micro_batch(number)
        return self._named(found.take(np.lexsort((found.ipu, found.start))))

    def _named(self, blocks: Blocks) -> pd.DataFrame:
        bodies = self.executions.bodies
        texts = [(body.stage, body.direction, body.layer, body.name) for body in bodies]
        stage, direction, layer, name = (
            np.array(column)[blocks.body] for column in zip(*texts or [(0, "", "", "")], strict=True)
        )
        columns = (
            blocks.ipu,
            np.zeros(len(blocks), np.int64),
            stage,
            blocks.micro_batch,
            direction,
            layer,
            name,
            blocks.start,
            blocks.end,
        )
        return pd.DataFrame(dict(zip(BLOCK_COLUMNS, columns, strict=True)))

    def columns(
        self, cycles_from: int | None = None, cycles_to: int | None = None, max_rows: int = MAX_COLUMNS
    ) -> pd.DataFrame:
        """A row per column, that is, what the IPUs do at the same time: `column` (its number), `phase` (fill, steady,
        drain, update), `slowest_ipu` (the one that all wait for), `cycles_from, cycles_to`. At most `max_rows`:
        `attrs["left_out"]` of the table says how many more there are, and a warning beyond the default's million."""
        first, last = self._window(cycles_from, cycles_to)
        max_rows = whole("max_rows", max_rows, least=0)
        count = self.executions.count(first, last, ("column",))
        last = self.executions.until(first, last, ("column",), max_rows)
        found, bodies = self.executions.window(first, last, ("column",)), self.executions.bodies
        before = self.executions.count(0, first, ("column",)) - int((found.start < first).sum())
        here = before + np.arange(len(found))
        frame = pd.DataFrame(
            {
                "column": here,
                "phase": [bodies[place].phase for place in found.body],
                "slowest_ipu": [bodies[place].ipu for place in found.body],
                "cycles_from": found.start,
                "cycles_to": found.end,
            }
        )
        return told_cut(frame, count - len(frame), asked=max_rows != MAX_COLUMNS)

    def _window(self, cycles_from: int | None, cycles_to: int | None) -> tuple[int, int]:
        first = self.span[0] if cycles_from is None else max(0, cycles_from)
        last = self.span[1] if cycles_to is None else min(cycles_to, self.profile.total_cycles)
        return min(first, self.profile.total_cycles), last

    def spent(self, cycles_from: int | None = None, cycles_to: int | None = None) -> pd.DataFrame:
        """Cycles by cause inside a window (default: the pipeline's span), an exact row per IPU and cause: `ipu, cause,
        cycles`. Of the whole call it is `cycle_breakdown`."""
        totals = self.profile.timeline.totals(*self._window(cycles_from, cycles_to))
        rows = [(ipu, cause, cycles) for (ipu, cause), cycles in totals.items()]
        return pd.DataFrame(rows, columns=["ipu", "cause", "cycles"])

    def bubbles(self, cycles_from: int | None = None, cycles_to: int | None = None) -> dict[str, Any]:
        """Waiting in a window (default: the pipeline's span).

        `fraction` is idle cycles / (IPUs x window), `by_cause` and `by_ipu` the idle cycles, `window` its two ends.
        """
        window = self._window(cycles_from, cycles_to)
        return dict(self._bubbles_of_span) if window == self._window(None, None) else self._bubbles(*window)

    @cached_property
    def _bubbles_of_span(self) -> dict[str, Any]:
        return self._bubbles(*self._window(None, None))

    def _bubbles(self, first: int, last: int) -> dict[str, Any]:
        totals = self.profile.timeline.totals(first, last)
        idle = [(ipu, cause, cycles) for (ipu, cause), cycles in totals.items() if cause in IDLE]
        by_cause, by_ipu = Counter[str](), Counter[int]()
        for ipu, cause, cycles in idle:
            by_cause[cause] += cycles
            by_ipu[ipu] += cycles
        whole = self.profile.ipus * max(0, last - first)
        return {
            "window": (first, last),
            "fraction": by_cause.total() / whole if whole else 0.0,
            "by_cause": {cause: by_cause[cause] for cause in IDLE if cause in by_cause},
            "by_ipu": [by_ipu[ipu] for ipu in range(self.profile.ipus)],
        }

    @cached_property
    def in_flight(self) -> dict[int, int]:
        """The most micro-batches whose forward pass is done and whose backward pass is not, by stage; empty where
        nothing runs backward. Their residuals wait: all but the newest of them in the FIFO."""
        bodies = self.executions.bodies
        # What is in flight recurs in the steady state, so the first millions of blocks have the most there is.
        end = self.executions.until(0, self.profile.total_cycles, ("stage",))
        blocks = self.executions.window(0, end, ("stage",))
        stage = np.array([body.stage for body in bodies], dtype=np.int64)[blocks.body]
        steps = {"forward": 1, "backward": -1}
        change = np.array([steps.get(body.direction, 0) for body in bodies], dtype=np.int64)[blocks.body]
        return {
            int(number): _most(blocks.end[stage == number], change[stage == number])
            for number in np.unique(stage[change < 0])
        }

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: schedule, stages and bubbles."""
        return {
            "pipeline": dict(self.profile.meta["pipeline"]),
            "ipus": self.profile.ipus,
            "total_cycles": self.profile.total_cycles,
            "stages": records(self.profile.stages),
            "bubbles": self.bubbles(),
        }

    @property
    def decided(self) -> str:
        """Whether memory or time decided where stages that were found are cut, and what more even ones would need; ""
        where a user cut them."""
        return str(self.profile.meta["pipeline"].get("decided", ""))

    @property
    def sentence(self) -> str:
        """The schedule, the bubble fraction and its largest cause, the slowest stage, and what decided a found cut."""
        data = self.data
        if not data["stages"]:
            return "Not pipelined: all steps run one after another"
        bubbles, plan = data["bubbles"], data["pipeline"]
        known = self.known_error("cycles")
        why = largest_text(bubbles["by_cause"], known)
        stages = self.profile.stages
        work = stages["compute_cycles"] + stages["exchange_cycles"]
        first, last = bubbles["window"]
        count = plan.get("micro_batches")
        batches = "? micro-batches" if count is None else things_text(int(count), "micro-batch")
        each = replicas_text(self.profile.meta)
        if len(stages) == 1:
            return (
                f"Not pipelined: one stage{each} runs {batches} one after another, {cycles_text(int(work.max()))} of "
                f"compute and exchange in {cycles_text(last - first)}, modelled"
            )
        return (
            f"{plan.get('schedule', 'Pipeline')} pipeline of {things_text(len(stages), 'stage')}{each}, "
            f"{batches}: {percent_text(bubbles['fraction'])} of "
            f"{things_text(data['ipus'], 'IPU')} × {cycles_text(last - first)} (modelled) is idle{why}; "
            f"{slowest_text(stages['stage'].tolist(), work.tolist(), known)} of compute and exchange"
            + (f"; {self.decided.partition(';')[0]}" if self.decided else "")
        )

    def to_pandas(self) -> pd.DataFrame:
        """The stages, with `busy_fraction` of the call, `in_flight` (see there) and `fifo_depth`, the slots in which
        residuals wait besides the one being filled; -1 where nothing runs backward. Idle cycles, `busy_fraction`,
        memory and stash are those of a stage's IPU, which stages may share."""
        stages = self.profile.stages
        whole = max(1, self.profile.total_cycles)
        waiting = [self.in_flight.get(int(stage), 0) for stage in stages["stage"]]
        return stages.assign(
            busy_fraction=np.asarray(1.0 - stages["idle_cycles"] / whole, dtype=np.float64),
            in_flight=waiting,
            fifo_depth=[most - 1 for most in waiting],
        )

    def to_text(self) -> str:
        """The sentence, what decided a found cut, and the stages."""
        sentence, *tables = super().to_text().split("\n\n")
        _, _, more = self.decided.partition("; ")
        lines = [sentence, *([shown(f"{more[:1].upper()}{more[1:]}")] if more else [])]
        return "\n\n".join(["\n".join(lines), *tables])


def slowest_text(stages: list[int], work: list[int], known: TypicalError | None) -> str:
    """`"stage 3 is slowest with 76.93 k cycles"`; of several that take as long, or of all, that they do; and which are
    quicker by less than such numbers usually are off."""
    most = cycles_text(max(work))
    found = [str(stage) for stage, cycles in zip(stages, work, strict=True) if cycles == max(work)]
    if len(found) == len(stages):
        return f"every stage takes {most}"
    near = [str(stages[place]) for place in as_much(known, work) if work[place] < max(work)]
    doubt = f" ({plural(len(near), 'stage')} {some_text(near, 4)} within the typical error)" if near else ""
    if len(found) == 1:
        return f"stage {found[0]} is slowest{doubt} with {most}"
    return f"stages {some_text(found, 4)} are slowest{doubt} with {most} each"


def largest_text(by_cause: Mapping[str, int], known: TypicalError | None) -> str:
    """What the idle cycles go into most: "most of it" is said of more than half; of several that are as much, to within
    what such numbers usually are off, all are named."""
    if not by_cause:
        return ""
    cause, cycles = max(by_cause.items(), key=lambda item: item[1])
    alike = [_WAITING[list(by_cause)[place]] for place in as_much(known, list(by_cause.values()))]
    if len(alike) > 1:
        return f", the largest parts of it {' and '.join(alike)}, alike within the typical error"
    part = "most" if 2 * cycles > sum(by_cause.values()) else "the largest part"
    return f", {part} of it {_WAITING[cause]}"


def _most(ends: IntArray, changes: IntArray) -> int:
    """The highest sum of changes over time; of those at the same time the falling ones first."""
    order = np.lexsort((changes, ends))
    return int(np.cumsum(changes[order]).max(initial=0))
