"""How long IPUs have been busy before given times, by cause: of many times at once, with one look into each body.

What falls into a bin of time is the difference at its two edges. A body is looked into once for all its calls, and all
turns of a loop at once, so that a picture of a long pipeline costs its columns and its bins, and not their product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.profiler.schema import Table
from workbench.profiler.timeline.timeline import Timed, TimedNode, Totals, plain_calls

FloatArray = npt.NDArray[np.float64]


def busy_before(profile: Timed, times: FloatArray, ipus: Sequence[int], causes: Sequence[str]) -> FloatArray:
    """Cycles each of some IPUs has spent on each cause before each time: float64[times, IPUs, causes].

    `times` rise. What is shorter than the distance between two of them is taken as evenly spread over its own length.
    """
    columns = {key: place for place, key in enumerate((ipu, cause) for ipu in ipus for cause in causes)}
    look = _Look(
        fine=float(np.diff(times).min(initial=np.inf)),
        columns=columns,
        steps=_columns_of(profile.tables["steps"], columns),
        bodies=profile.timeline.functions,
        found=np.zeros((len(times), len(columns))),
    )
    root = profile.timeline.root
    look.node(root, np.clip(times, 0, root.cycles), np.arange(len(times)))
    for name, body in reversed(list(profile.timeline.functions.items())):
        if asked := look.calls.pop(name, None):
            at, rows = (np.concatenate(each) for each in zip(*asked, strict=True))
            look.node(body, np.clip(at, 0, body.cycles), rows)
    return look.found.reshape(len(times), len(ipus), len(causes))


def _columns_of(steps: Table, columns: dict[tuple[int, str], int]) -> IntArray:
    """The columns a step adds to, one for each of the IPUs it works on, by its id; -1: none. int64[2, steps]."""
    found = np.full((2, int(steps["id"].max(initial=-1)) + 1), -1, np.int64)
    where = (steps[name].tolist() for name in ("cause", "ipu", "to_ipu"))
    places: dict[tuple[str, int, int], int] = {}
    kinds = [places.setdefault(key, len(places)) for key in zip(*where, strict=True)]
    own = [columns.get((ipu, cause), -1) for cause, ipu, _ in places]
    others = [-1 if other in (-1, ipu) else columns.get((other, cause), -1) for cause, ipu, other in places]
    found[:, steps["id"]] = np.array([own, others], np.int64)[:, kinds]
    return found


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a sequence: what each takes, `busy` float64[parts, columns], and the sums `before` it; `columns` are
    those of the result. `inside` are those that are looked into.
    """

    starts: IntArray
    cycles: IntArray
    columns: IntArray
    busy: FloatArray
    before: FloatArray
    inside: npt.NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class _Look:
    """Adds to `found` float64[times, columns]; `calls` are the times at which bodies are still to be looked into."""

    fine: float
    columns: dict[tuple[int, str], int]
    steps: IntArray
    bodies: Mapping[str, TimedNode]
    found: FloatArray
    calls: dict[str, list[tuple[FloatArray, IntArray]]] = field(default_factory=lambda: defaultdict(list))

    def node(self, node: TimedNode, times: FloatArray, rows: IntArray) -> None:
        """What a node takes before times of its own, from 0 to its cycles, is added to these rows."""
        body = node.children[0] if node.kind == "repeat" else node
        if not node.cycles:
            return
        if node.kind == "step" or body.cycles < self.fine:
            self._add(node.totals, times / node.cycles, rows)
        elif node.kind == "sequence":
            self._sequence(node, times, rows)
        elif node.kind == "repeat":
            turns = np.minimum(np.floor(times / body.cycles), node.times)
            self._add(body.totals, turns, rows)
            self.node(body, times - turns * body.cycles, rows)
        elif node.kind == "overlap":
            self._overlap(node, times, rows)
        elif node.kind == "call":
            self.calls[node.function].append((times, rows))
        else:
            self.node(node.children[node.arm], times, rows)

    def _overlap(self, node: TimedNode, times: FloatArray, rows: IntArray) -> None:
        branches = plain_calls(node)
        if branches is None:
            for child in node.children:
                self.node(child, np.minimum(times, child.cycles), rows)
            return
        for calls in branches:
            start = 0
            for call in calls:
                self.calls[call.function].append((times - start, rows))
                start += self.bodies[call.function].cycles

    def _sequence(self, node: TimedNode, times: FloatArray, rows: IntArray) -> None:
        members = node.members
        parts = self._parts(node, members)
        at = np.searchsorted(parts.starts, times, side="right") - 1
        since, deeper = times - parts.starts[at], parts.inside[at]
        share = np.where(deeper, 0.0, since / np.maximum(parts.cycles[at], 1))
        found = parts.before[at] + parts.busy[at] * share[:, None]
        place = (rows[:, None], parts.columns[None, :])
        if np.bincount(rows, minlength=1).max() <= 1:
            self.found[place] += found
        else:  # two calls of a body at one time
            np.add.at(self.found, place, found)
        order = np.flatnonzero(deeper)
        order = order[at[order].argsort(kind="stable")]
        places, first = np.unique(at[order], return_index=True)
        for place, mine in zip(places.tolist(), np.split(order, first[1:]), strict=bool(len(places))):
            child = members[place]
            assert isinstance(child, TimedNode)
            self.node(child, since[mine], rows[mine])

    def _parts(self, node: TimedNode, members: Sequence[TimedNode | int]) -> _Parts:
        starts = np.array(node.offsets, np.int64)
        cycles = np.diff(starts, append=node.cycles)
        ids = np.array([member if isinstance(member, int) else -1 for member in members], np.int64)
        steps, nodes = np.flatnonzero(ids >= 0), np.flatnonzero(ids < 0)
        totals = [member.totals for member in members if isinstance(member, TimedNode)]
        keys = [self.columns.get(key, -1) for each in totals for key in each]
        of_nodes = [cycles for each in totals for cycles in each.values()]
        many = np.array([len(each) for each in totals], np.int64)
        place = np.concatenate((steps, steps, np.repeat(nodes, many)))
        column = np.concatenate((*self.steps[:, ids[steps]], np.array(keys, np.int64)))
        spent = np.concatenate((cycles[steps], cycles[steps], np.array(of_nodes, np.int64)))
        there = column >= 0
        used = np.bincount(column[there], minlength=len(self.columns)) > 0
        columns = np.flatnonzero(used)
        busy = np.zeros((len(members), len(columns)))
        busy[place[there], (np.cumsum(used) - 1)[column[there]]] = spent[there]
        before = np.cumsum(busy, axis=0) - busy
        return _Parts(starts, cycles, columns, busy, before, (ids < 0) & (cycles >= self.fine))

    def _add(self, totals: Totals, share: FloatArray, rows: IntArray) -> None:
        for key, cycles in totals.items():
            column = self.columns.get(key)
            if column is not None:
                np.add.at(self.found[:, column], rows, cycles * share)
