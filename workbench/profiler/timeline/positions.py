"""For whom the step at each position of an IPU's program runs: calls expanded in place, the bodies of loops once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.schema import Column
from workbench.profiler.timeline.timeline import recomputed, renamed
from workbench.profiler.timeline.tree import Call, Controlled, Part, Step, children


class _Around(NamedTuple):
    """What the calls above a step say: the layer that its body is called for (None: its own), whether they compute
    something again."""

    layer: str | None = None
    again: bool = False


_Expanded: TypeAlias = tuple[IntArray, IntArray]
"""Rows of the table of steps in order, and the place of what is around each."""


class Positions(NamedTuple):
    """Of the step at each position its name, layer and direction there."""

    name: Column
    layer: Column
    direction: Column


_KNOWN: WeakKeyDictionary[Controlled, dict[int, Positions]] = WeakKeyDictionary()


def positions_of(profile: Controlled, ipu: int, steps: IntArray) -> Positions:
    """What stands at the positions of an IPU, which are those of `steps`; kept as long as the profile is, for several
    reports ask."""
    known = _KNOWN.setdefault(profile, {})
    if ipu not in known:
        known[ipu] = _found(profile, ipu, steps)
        for column in known[ipu]:
            column.flags.writeable = False
    return known[ipu]


def _found(profile: Controlled, ipu: int, steps: IntArray) -> Positions:
    table = profile.tables["steps"]
    order = np.argsort(table["id"], kind="stable")
    rows = order[np.searchsorted(table["id"][order], steps)]
    expanding = _Expanding(profile, ipu)
    found, around = expanding.part(profile.control.entry)
    if not np.array_equal(found, rows):  # a profile that does not keep its tree, or one written down by hand
        found, around = rows, np.zeros(len(rows), np.int64)
    own, name, direction = (table[column][found] for column in ("layer", "name", "direction"))
    layer = own.copy()
    for place, each in enumerate(expanding.around):
        here = around == place
        if each.layer is not None:
            layer[here] = each.layer
        if each.again:
            direction[here] = [recomputed(text) for text in direction[here].tolist()]
    for place in np.flatnonzero(own != layer).tolist():
        name[place] = renamed(name[place], own[place], layer[place])
    return Positions(name=name, layer=layer, direction=direction)


class _Expanding:
    """One IPU's walk over the control tree; the bodies of functions are expanded once."""

    def __init__(self, profile: Controlled, ipu: int) -> None:
        steps, self.bodies = profile.tables["steps"], profile.control.functions
        mine = (steps["ipu"] == ipu) | (steps["to_ipu"] == ipu)
        ids = steps["id"].tolist()
        self.rows: Mapping[int, int] = {ids[row]: row for row in np.flatnonzero(mine).tolist()}
        self.around: dict[_Around, int] = {_Around(): 0}
        self._known: dict[str, _Expanded] = {}
        self._called: dict[tuple[str, _Around], _Expanded] = {}

    def part(self, part: Part) -> _Expanded:
        """The steps of this IPU in a part."""
        if isinstance(part, Call):
            return self._call(part)
        found: list[_Expanded] = []
        run: list[int] = []  # neighbouring steps
        for child in (part,) if isinstance(part, Step) else children(part):
            if isinstance(child, Step):
                if child.id in self.rows:
                    run.append(self.rows[child.id])
            elif len((inside := self.part(child))[0]):
                found += [_own(run), inside] if run else [inside]
                run = []
        if run or not found:
            found.append(_own(run))
        if len(found) == 1:
            return found[0]
        rows, around = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(around)

    def _call(self, call: Call) -> _Expanded:
        outer = _Around(call.for_layer, call.direction == "recompute")
        found = self._called.get((call.function, outer))
        if found is None:
            found = self._called[call.function, outer] = self._body(call.function, outer)
        return found

    def _body(self, function: str, outer: _Around) -> _Expanded:
        if function not in self._known:
            self._known[function] = self.part(self.bodies[function])
        rows, inside = self._known[function]
        if outer == _Around() or not len(rows):
            return rows, inside
        places = np.zeros(len(self.around), np.int64)
        for inner, place in list(self.around.items()):
            layer = outer.layer if inner.layer is None else inner.layer
            places[place] = self.around.setdefault(_Around(layer, inner.again or outer.again), len(self.around))
        return rows, places[inside]


def _own(rows: list[int]) -> _Expanded:
    return np.array(rows, np.int64), np.zeros(len(rows), np.int64)
