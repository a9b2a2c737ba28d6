"""Stages, micro-batches and directions over time on every IPU, and the bubbles between them by cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, records
from workbench.profiler.timeline import Node, called
from workbench.units import cycles_text, percent_text

MAX_BLOCKS = 20_000
IDLE = ("idle_fill", "idle_drain", "idle_wait_stage", "idle_wait_host")
COLUMNS = ("ipu", "stage", "micro_batch", "direction", "name", "cycles_from", "cycles_to")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline(Report):
    """Of a program without stages there are no blocks, and the window is the whole call."""

    name: ClassVar[str] = "pipeline"
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Pipeline:
        """The pipeline of a profile."""
        return cls(profile=profile)

    @cached_property
    def span(self) -> tuple[int, int]:
        """Cycles [first, last) from the start of the first column to the end of the last; columns are the parts of the
        program where stages run side by side. The whole call when there are none."""
        found = _columns(self.profile.timeline.root)
        return (0, self.profile.total_cycles) if found is None else found

    def blocks(
        self, cycles_from: int | None = None, cycles_to: int | None = None, max_rows: int = MAX_BLOCKS
    ) -> pd.DataFrame:
        """A row per executed stage in a window (default: the pipeline's span), in order of time: `ipu, stage,
        micro_batch` (-1 unknown)`, direction, name, cycles_from, cycles_to`."""
        first = self.span[0] if cycles_from is None else cycles_from
        last = self.span[1] if cycles_to is None else cycles_to
        return pd.DataFrame(islice(self._rows(first, last), max_rows), columns=list(COLUMNS))

    def _rows(self, first: int, last: int) -> Iterator[tuple[Any, ...]]:
        for block in self.profile.timeline.walk(first, last, whole=_is_stage):
            node = block.node
            if not _is_stage(node):
                continue
            context = called(node, block.context)
            for ipu in sorted(node.ipus):
                yield (
                    ipu,
                    context.stage,
                    context.micro_batch,
                    context.direction,
                    node.name,
                    block.start,
                    block.end,
                )

    def bubbles(self, cycles_from: int | None = None, cycles_to: int | None = None) -> dict[str, Any]:
        """Waiting in a window (default: the pipeline's span).

        `fraction` is idle cycles / (IPUs x window), `by_cause` and `by_ipu` the idle cycles, `window` its two ends.
        """
        first = self.span[0] if cycles_from is None else max(0, cycles_from)
        last = self.span[1] if cycles_to is None else min(cycles_to, self.profile.total_cycles)
        totals = self.profile.timeline.totals(first, last)
        idle = {key: cycles for key, cycles in totals.items() if key[1] in IDLE}
        whole = self.profile.ipus * max(0, last - first)
        by_cause = {cause: sum(cycles for key, cycles in idle.items() if key[1] == cause) for cause in IDLE}
        return {
            "window": (first, last),
            "fraction": sum(idle.values()) / whole if whole else 0.0,
            "by_cause": {cause: cycles for cause, cycles in by_cause.items() if cycles},
            "by_ipu": [
                sum(cycles for key, cycles in idle.items() if key[0] == ipu) for ipu in range(self.profile.ipus)
            ],
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
    def sentence(self) -> str:
        """The schedule, the bubble fraction and its largest cause, and the slowest stage."""
        data = self.data
        if not data["stages"]:
            return "Not pipelined: all steps run one after another"
        bubbles, plan = data["bubbles"], data["pipeline"]
        causes = sorted(bubbles["by_cause"].items(), key=lambda item: -item[1])
        why = f", most of it {causes[0][0][5:].replace('_', ' ')}" if causes else ""
        stages = self.profile.stages
        work = stages["compute_cycles"] + stages["exchange_cycles"]
        slowest = stages.iloc[int(work.to_numpy().argmax())]
        return (
            f"{plan.get('schedule', 'Pipeline')} pipeline of {len(stages)} stages, "
            f"{plan.get('micro_batches', '?')} micro-batches: {percent_text(bubbles['fraction'])} of "
            f"{data['ipus']} IPUs x {cycles_text(bubbles['window'][1] - bubbles['window'][0])} is idle{why}; "
            f"stage {int(slowest['stage'])} is slowest with {cycles_text(int(work.max()))}"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The stages, with `busy_fraction` of the call."""
        stages = self.profile.stages
        whole = max(1, self.profile.total_cycles)
        return stages.assign(busy_fraction=np.asarray(1.0 - stages["idle_cycles"] / whole, dtype=np.float64))


def _is_stage(node: Node) -> bool:
    return node.kind == "call" and node.call.stage >= 0


def _columns(node: Node) -> tuple[int, int] | None:
    """The first and the last cycle of the columns below a node, from its start."""
    if node.kind == "overlap":
        return (0, node.cycles)
    found: tuple[int, int] | None = None
    starts = node.offsets if node.kind == "sequence" else (0,) * len(node.children)
    for start, child in zip(starts, node.children, strict=True):
        inner = _columns(child)
        if inner is not None:
            found = (found[0] if found else start + inner[0], start + inner[1])
    if found is not None and node.kind == "repeat":
        return (found[0], (node.times - 1) * node.children[0].cycles + found[1])
    return found
