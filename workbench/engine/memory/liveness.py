"""What is live when: per IPU a timeline of steps, per variable its intervals, per (tile, step) the live bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.base.categories import FOOTPRINT_CATEGORIES, VARIABLE_CATEGORIES
from workbench.engine.memory.footprint import Footprint
from workbench.engine.memory.intervals import Intervals
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.memory.running import Whole, highest_sums, running_sums
from workbench.engine.memory.states import States, pairs_of_numbers
from workbench.engine.program import TileProgram
from workbench.engine.program.columns import columns_of


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepPeaks:
    """A curve over the timeline positions of one IPU, each int64[positions].

    `live_bytes`: not-always-live bytes of all tiles together. `worst_tile`: the tile with the most bytes, always-live
    ones included; `worst_tile_bytes`: those bytes.
    """

    live_bytes: IntArray
    worst_tile: IntArray
    worst_tile_bytes: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Table:
    """Bytes of one IPU by class of tiles with equal memory.

    `rows` is int64[distinct rows, classes]; `members` the variables with intervals and their rows, int64[members, 2];
    `kept` the always-live variables and theirs, int64[kept, 2];
    `class_of` int64[tiles]; `first_tile` int64[classes]; `counts` tiles per class; `always` int64[classes].
    """

    rows: IntArray
    members: IntArray
    kept: IntArray
    class_of: IntArray
    first_tile: IntArray
    counts: IntArray
    always: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Lives:
    """The lifetimes of an IPU: `life_of` each member of its table, int64[members]; `spans` are lifetime, first and last
    position, int64[spans, 3].
    """

    life_of: IntArray
    spans: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Peaks:
    """The peaks of an IPU by class of tiles, and the first positions that reach them, int64[classes] both."""

    peak: IntArray
    where: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Liveness:
    """Timelines and intervals of a program.

    `timelines[ipu]` is int64[positions]: the step id at each position (static order, calls expanded in place, bodies
    of a `Repeat` once). `intervals[variable id]` are its disjoint ascending intervals in the timeline of its IPU;
    always-live variables and variables that no step touches have none. `live_bytes` is computed on every call, peaks
    and curves once.
    """

    program: TileProgram
    footprint: Footprint
    timelines: tuple[IntArray, ...]
    intervals: Intervals
    tables: tuple[_Table, ...]
    _known_peaks: dict[int, _Peaks] = field(init=False, default_factory=dict)
    _known_curves: dict[int, StepPeaks] = field(init=False, default_factory=dict)
    _known_lives: dict[int, _Lives] = field(init=False, default_factory=dict)
    _known_states: dict[int, States] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intervals", Intervals.of(self.intervals))

    def tile_classes(self, ipu: int) -> IntArray:
        """For each tile the lowest one whose memory is equal in every variable and category, int64[tiles]."""
        table = self.tables[ipu]
        return table.first_tile[table.class_of]

    def always_live_bytes(self, ipu: int) -> IntArray:
        """Footprint and always-live variables, int64[tiles]."""
        table = self.tables[ipu]
        return table.always[table.class_of]

    def live_bytes(self, ipu: int) -> IntArray:
        """Not-always-live bytes, int64[positions, tiles]."""
        table = self.tables[ipu]
        states = self.states(ipu, table)
        chunks = [chunk[:, table.class_of].astype(np.int64) for _, chunk in self._chunks(table, states)]
        return np.concatenate(chunks)[states.of_position] if chunks else np.zeros((0, len(table.class_of)), np.int64)

    def peak_bytes(self, ipu: int) -> IntArray:
        """Largest not-always-live bytes of each tile over the positions, int64[tiles]."""
        return self._peaks(ipu).peak[self.tables[ipu].class_of]

    def peak_positions(self, ipu: int) -> IntArray:
        """First position at which each tile reaches its peak, int64[tiles]; 0 without positions."""
        return self._peaks(ipu).where[self.tables[ipu].class_of]

    def step_peaks(self, ipu: int) -> StepPeaks:
        """The curve of the liveness report."""
        if ipu not in self._known_curves:
            self._known_curves[ipu] = self._curve_of(ipu)
        return self._known_curves[ipu]

    def live_variables(self, ipu: int, position: int) -> tuple[int, ...]:
        """Ids of the not-always-live variables that are live at a position."""
        lives = self._lives(ipu)
        life, first, last = lives.spans.T
        live = np.isin(lives.life_of, life[(first <= position) & (position <= last)])
        return tuple(self.tables[ipu].members[live, 0].tolist())

    def lives(self, ipu: int) -> IntArray:
        """Of each member of the IPU's table the number of its lifetime, equal ones the same, in order of the first."""
        return self._lives(ipu).life_of

    def life_changes(self, ipu: int) -> IntArray:
        """What begins (1) or ends (-1) from one state to the next: state, lifetime, times; int64[changes, 3]."""
        return self._life_states(ipu).changes

    def category_bytes(self, ipu: int, position: int) -> dict[str, IntArray]:
        """Bytes per category at a position, int64[tiles] each: variable kinds and footprint categories.

        Summed from the variables one by one, so that it checks `live_bytes`, which takes another way.
        """
        tiles = self.program.target.tiles_per_ipu
        result = {kind: np.zeros(tiles, np.int64) for kind in VARIABLE_CATEGORIES}
        for variable in self.program.variables:
            spans = () if variable.ipu != ipu or variable.always_live else self.intervals[variable.id]
            live = variable.always_live or any(first <= position <= last for first, last in spans)
            if variable.ipu == ipu and live:
                result[variable.kind] += variable.bytes_per_tile
        return result | {name: self.footprint.categories[name][ipu].copy() for name in FOOTPRINT_CATEGORIES}

    def aligned_bytes(
        self, ipu: int, alignment_bytes: int, interleaved_alignment_bytes: int, *, above: int = -1
    ) -> IntArray:
        """Always-live bytes plus live peak with every block rounded up to its alignment, int64[tiles].

        Of tiles that need at most `above` bytes only a bound is worked out, which is not above it either.
        """
        table, count = self.tables[ipu], len(self.tables[ipu].rows)

        def wide(members: IntArray) -> IntArray:
            variable, row = members.T
            return np.column_stack((variable, row + count * columns_of(self.program).interleaved[variable]))

        kept, times = np.unique(wide(table.kept)[:, 1], return_counts=True)
        alignments = np.where(kept < count, alignment_bytes, interleaved_alignment_bytes)[:, None]
        costs = np.stack([self.footprint.categories[name][ipu][table.first_tile] for name in FOOTPRINT_CATEGORIES])
        always = _up(costs, alignment_bytes).sum(axis=0) + times @ _up(table.rows[kept % max(count, 1)], alignments)
        most_rounding = max(alignment_bytes, interleaved_alignment_bytes) - 1
        needed = always + self._peaks(ipu).peak + most_rounding * self._most_members(ipu)
        exact = np.flatnonzero(needed > above)
        peak = np.zeros(len(exact), np.int64)
        if len(exact):
            rows = table.rows[:, exact]  # of few tiles
            rows = np.concatenate((_up(rows, alignment_bytes), _up(rows, interleaved_alignment_bytes)))
            fewer = replace(table, rows=rows, members=wide(table.members), always=table.always[exact])
            for _, chunk in self._chunks(fewer, self.states(ipu, fewer)):
                np.maximum(peak, chunk.max(axis=0), out=peak)
        needed[exact] = always[exact] + peak
        return np.asarray(needed[table.class_of], np.int64)

    def _most_members(self, ipu: int) -> int:
        """The most not-always-live variables of an IPU that are live at one position."""
        return int(self._summed(ipu, np.bincount(self._lives(ipu).life_of)).max(initial=0))

    def _lives(self, ipu: int) -> _Lives:
        if ipu not in self._known_lives:
            found = self.intervals.take(self.tables[ipu].members[:, 0])
            life_of, first = found.distinct()
            each = found.take(first)
            spans = np.column_stack((each.variable, each.ends))
            self._known_lives[ipu] = _Lives(life_of=frozen(life_of), spans=frozen(spans))
        return self._known_lives[ipu]

    def _events(self, ipu: int) -> tuple[IntArray, IntArray, IntArray]:
        """Position, lifetime and sign of what becomes live (1) or stops to be (-1), each int64[events]."""
        life, first, last = self._lives(ipu).spans.T
        signs = np.repeat(np.array([1, -1], np.int64), len(life))
        return np.concatenate((first, last + 1)), np.concatenate((life, life)), signs

    def _summed(self, ipu: int, amounts: IntArray) -> IntArray:
        """Amounts of the lifetimes that are live at each position, int64[positions]."""
        position, life, sign = self._events(ipu)
        change = np.zeros(len(self.timelines[ipu]) + 1, np.int64)
        np.add.at(change, position, sign * amounts[life])
        return np.cumsum(change)[:-1]

    def _life_states(self, ipu: int) -> States:
        """Lifetimes that are together: bodies are called many times, and steps between change little."""
        if ipu not in self._known_states:
            count = int(self._lives(ipu).life_of.max(initial=-1)) + 1
            found = States.of(*self._events(ipu), rows=count, positions=len(self.timelines[ipu]))
            self._known_states[ipu] = found
        return self._known_states[ipu]

    def states(self, ipu: int, table: _Table) -> States:
        """Rows of the table that are live together.

        The members of the table are those of the IPU's own, in other rows maybe.
        """
        return self._life_states(ipu).of_members(self._lives(ipu).life_of, table.members[:, 1], len(table.rows))

    def _chunks(self, table: _Table, states: States) -> Iterator[tuple[int, IntArray]]:
        """(first state, integers[some states, classes]) of live bytes, by summing what came and what went."""
        return running_sums(_whole(table, states), states.changes, len(states.first))

    def _live_of_all(self, ipu: int) -> IntArray:
        """Not-always-live bytes of all tiles together, int64[positions]."""
        table, life_of = self.tables[ipu], self._lives(ipu).life_of
        amounts = np.zeros(int(life_of.max(initial=-1)) + 1, np.int64)
        np.add.at(amounts, life_of, (table.rows @ table.counts)[table.members[:, 1]])
        return self._summed(ipu, amounts)

    def _peaks(self, ipu: int) -> _Peaks:
        if ipu not in self._known_peaks:
            self._known_peaks[ipu] = self._peaks_of(ipu)
        return self._known_peaks[ipu]

    def _peaks_of(self, ipu: int) -> _Peaks:
        table = self.tables[ipu]
        states = self.states(ipu, table)
        crests = states.crests()
        peak, crest = highest_sums(_whole(table, crests), crests.changes, len(crests.first))
        where = states.first[states.first_to_reach(crests.first[crest], table.rows)] if len(states.first) else crest
        return _Peaks(peak=peak, where=np.where(peak > 0, where, 0))

    def _curve_of(self, ipu: int) -> StepPeaks:
        table = self.tables[ipu]
        states = self.states(ipu, table)
        worst, worst_bytes = np.zeros((2, len(states.first)), np.int64)
        for start, chunk in self._chunks(table, states):
            here = slice(start, start + len(chunk))
            chunk += table.always.astype(chunk.dtype)
            chosen = chunk.argmax(axis=1)
            worst[here] = table.first_tile[chosen]
            worst_bytes[here] = chunk[np.arange(len(chunk)), chosen]
        return StepPeaks(
            live_bytes=frozen(self._live_of_all(ipu)),
            worst_tile=frozen(worst[states.of_position]),
            worst_tile_bytes=frozen(worst_bytes[states.of_position]),
        )


def liveness(program: TileProgram, footprint: Footprint) -> Liveness:
    """Timelines and intervals of every variable."""
    found = lifetimes(program)
    intervals = Intervals.of(found.intervals)
    return Liveness(
        program=program,
        footprint=footprint,
        timelines=tuple(frozen(np.array(steps, dtype=np.int64)) for steps in found.timelines),
        intervals=intervals,
        tables=tuple(_table(program, footprint, ipu, intervals) for ipu in range(program.ipus)),
    )


def _whole(table: _Table, states: States) -> Whole:
    """The rows of a table in integers of 32 bits where all bytes together fit in them: they take half the time."""
    highest = table.rows.max(axis=1, initial=0)[states.changes[:, 1]] * np.abs(states.changes[:, 2])
    most = int(highest.sum()) + int(table.always.max(initial=0))
    return table.rows.astype(np.int32 if most < 1 << 31 else np.int64)


def _up(sizes: IntArray, alignment: int | IntArray) -> IntArray:
    return ceil_div(sizes, alignment) * alignment


def _table(program: TileProgram, footprint: Footprint, ipu: int, intervals: Intervals) -> _Table:
    columns = columns_of(program)
    mine = np.flatnonzero(columns.ipu == ipu)
    held, row = _rows(program, mine)
    kept = columns.always_live[mine]
    live = ~kept & (intervals.counts[mine] > 0)
    every = np.stack([*held, *(footprint.categories[name][ipu] for name in FOOTPRINT_CATEGORIES)])
    class_of, first_tile, counts = _classes(every)
    rows = every[: len(held), first_tile]
    always = every[len(held) :, first_tile].sum(axis=0) + np.bincount(row[kept], minlength=len(rows)) @ rows
    return _Table(
        rows=frozen(rows),
        members=frozen(np.column_stack((mine, row))[live]),
        kept=frozen(np.column_stack((mine, row))[kept]),
        class_of=frozen(class_of),
        first_tile=frozen(first_tile),
        counts=frozen(counts),
        always=frozen(always),
    )


def _rows(program: TileProgram, variables: IntArray) -> tuple[list[IntArray], IntArray]:
    """The distinct bytes per tile of some variables, in order of the first, int64[tiles] each; and each one's row."""
    columns = columns_of(program)
    distinct: dict[bytes, int] = {}
    known: dict[int, int] = {}
    rows: list[IntArray] = []
    places = []
    for vector in columns.vector[variables].tolist():
        if vector not in known:
            array = columns.vectors[vector]
            known[vector] = distinct.setdefault(array.tobytes(), len(rows))
            if known[vector] == len(rows):
                rows.append(array)
        places.append(known[vector])
    return rows, np.array(places, np.int64)


def _classes(columns: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of equal columns (tiles), int64[rows, tiles]: the class of each tile, and of each class its lowest tile and how
    many tiles it has. Classes are in order of their lowest tiles."""
    told = np.einsum("r,rt->t", pairs_of_numbers(len(columns))[0], columns.view(np.uint64))
    _, first, inverse = np.unique(told, return_index=True, return_inverse=True)
    alike = first[inverse]
    others = np.flatnonzero(alike != np.arange(len(alike)))
    if (columns[:, others] != columns[:, alike[others]]).any():  # unequal columns told alike
        _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    class_of = rank[inverse.reshape(-1)]
    return class_of, first[order], np.bincount(class_of, minlength=len(order))
