"""Level of detail of pipelines: what a window shows within a budget of rectangles.

Where all blocks are too many, neighbouring micro-batches of one stage and direction become one rectangle (2, 4, 8 ...
of them), and what lies between the stages is summed into equal parts of the window. Cycles add up at every level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.profiler.timeline.executions import MOST_BLOCKS, Activity, Blocks, Executions, Kind

WORK: tuple[Kind, ...] = ("stage", "copy", "collective", "other", "idle")
MAX_SLOTS = 400
MAX_SUMS = 4_000_000
# Of the budget, what the rectangles of stages may take; the parts between them get the rest.
STAGE_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """Rectangles by IPU, then start. `group` micro-batches share a rectangle, 1 is every block by itself.

    `body` is a place in `bodies`; `busy` are the cycles of `span` that are spent there, `micro_batch` to `last` the
    micro-batches in it (-1 none).
    """

    group: int
    bodies: tuple[Activity, ...]
    ipu: IntArray
    body: IntArray
    start: IntArray
    span: IntArray
    busy: npt.NDArray[np.float64]
    micro_batch: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.start)


def level(executions: Executions, first: int, last: int, budget: int, finest: int = 1) -> Level:
    """What stands in cycles [first, last), in at most `budget` rectangles; not finer than groups of `finest`."""
    if finest == 1 and executions.count(first, last, WORK) <= budget:
        return _every(executions, executions.window(first, last, WORK))
    if executions.count(first, last, ("stage",)) > MOST_BLOCKS:  # micro-batches that no rectangle could be seen of
        none = tuple(np.zeros(0) for _ in range(7))
        return _with_slots(executions, none, (first, last), 1, budget, stages=True)
    works = executions.window(first, last, ("stage",))
    works = works.take(works.micro_batch >= 0)
    group = _group(works, int(budget * STAGE_SHARE), max(2, finest))
    runs = _runs(works, group)
    return _with_slots(executions, runs, (first, last), group, budget - len(runs[0]))


def _every(executions: Executions, blocks: Blocks) -> Level:
    return Level(
        group=1,
        bodies=executions.bodies,
        ipu=blocks.ipu,
        body=blocks.body,
        start=blocks.start,
        span=blocks.cycles,
        busy=blocks.cycles.astype(np.float64),
        micro_batch=blocks.micro_batch,
        last=blocks.micro_batch,
    )


def _group(works: Blocks, budget: int, finest: int) -> int:
    """The smallest power of two that makes few enough rectangles."""
    most = np.full(int(works.body.max(initial=0)) + 1, -1)
    least = np.full(len(most), np.iinfo(np.int64).max)
    np.maximum.at(most, works.body, works.micro_batch)
    np.minimum.at(least, works.body, works.micro_batch)
    seen = most >= 0
    group = finest
    while int((most[seen] // group - least[seen] // group + 1).sum()) > max(budget, int(seen.sum())):
        group *= 2
    return group


def _runs(works: Blocks, group: int) -> tuple[Any, ...]:
    """Columns of rectangles: ipu, body, start, span, busy, first and last micro-batch."""
    if not len(works):
        return tuple(np.zeros(0) for _ in range(7))
    order = np.lexsort((works.start, works.micro_batch // group, works.ipu, works.body))
    found = works.take(order)
    turn = found.micro_batch // group
    new = (np.diff(found.body) != 0) | (np.diff(found.ipu) != 0) | (np.diff(turn) != 0)
    cuts = np.concatenate(([0], np.flatnonzero(new) + 1))
    begins = np.minimum.reduceat(found.start, cuts)
    return (
        found.ipu[cuts],
        found.body[cuts],
        begins,
        np.maximum.reduceat(found.end, cuts) - begins,
        np.add.reduceat(found.cycles, cuts),
        np.minimum.reduceat(found.micro_batch, cuts),
        np.maximum.reduceat(found.micro_batch, cuts),
    )


def _with_slots(
    executions: Executions,
    runs: tuple[Any, ...],
    window: tuple[int, int],
    group: int,
    budget: int,
    *,
    stages: bool = False,
) -> Level:
    """Runs, and what lies between them, summed by IPU and main cause into slots; `stages`: these too."""
    place = {body: at for at, body in enumerate(executions.bodies)}
    summed = np.array([place.setdefault(_sum_of(body), len(place)) for body in executions.bodies], dtype=np.int64)
    table = executions.table
    between = (executions.kinds[table[:, 1]] != "stage") | (table[:, 6] < 0)
    rest = table[(table[:, 0] >= 0) & (stages | between)]
    keys, of_row = np.unique(rest[:, 0] * len(place) + summed[rest[:, 1]], return_inverse=True)
    slots = max(1, min(MAX_SLOTS, budget // max(1, len(keys)), MAX_SUMS // max(1, len(rest))))
    edges = window[0] + (window[1] - window[0]) * np.arange(slots + 1) / slots
    busy = np.zeros((len(keys), slots))
    np.add.at(busy, of_row, executions.cycles_between(rest, edges))
    key, slot = np.nonzero(busy > 0)
    none = np.full(len(key), -1.0)
    ipu, body = np.divmod(keys[key], len(place))
    sums = np.stack([ipu, body, edges[slot], np.diff(edges)[slot], busy[key, slot], none, none])
    columns = np.concatenate([np.stack(runs), sums], axis=1)
    columns = columns[:, np.lexsort((columns[2], columns[0]))]
    whole = columns.round().astype(np.int64)
    return Level(
        group=group,
        bodies=tuple(place),
        ipu=whole[0],
        body=whole[1],
        start=whole[2],
        span=whole[3],
        busy=columns[4],
        micro_batch=whole[5],
        last=whole[6],
    )


def _sum_of(body: Activity) -> Activity:
    """What a body is counted under between the stages: its kind and main cause; an update stays what it is."""
    if body.kind in ("stage", "column"):
        return body
    main = max(body.mix, key=lambda part: part[1], default=("compute", 1.0))[0]
    return Activity(kind=body.kind, name="" if body.kind == "idle" else main, mix=((main, 1.0),))
