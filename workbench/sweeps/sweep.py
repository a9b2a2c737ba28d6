"""A model at many points: the table of what each costs, the best of them, and the profile behind each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.checked import heard
from workbench.base.text import meant, short, shown
from workbench.base.units import bytes_text, cycles_text, things_text
from workbench.errors import InputError, WorkbenchError
from workbench.executable import cache
from workbench.executable.compile import needed_ipus, traced_graph
from workbench.executable.sources import check_source, is_function, made_by_hand
from workbench.profiler.fidelity import others_within
from workbench.profiler.profile import Profile
from workbench.profiler.report import Report, face, records, text_table
from workbench.sweeps.jobs import Done, Job
from workbench.sweeps.points import Point, Requests, kinds_of, points_of
from workbench.sweeps.run import TOGETHER, Group, Runner, check_executor
from workbench.sweeps.store import Store

MEASURED: dict[str, Callable[[Profile], Any]] = {
    "fits": lambda profile: profile.fits,
    "max_tile_bytes": lambda profile: profile.max_tile_bytes,
    "margin_bytes": lambda profile: profile.margin_bytes,
    "total_cycles": lambda profile: profile.total_cycles,
    "seconds": lambda profile: profile.seconds,
    "samples_per_second": lambda profile: profile.samples_per_second,
}
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One point: what was asked, what was measured, or the problem. `key`: of its profile, "" where there is none."""

    point: Point
    values: Mapping[str, Any]
    key: str = ""
    compile_seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep(Report):
    """A row for each point, in the order of the grid. `columns`: what is asked of each profile; `how`: where they were
    compiled; `folder`: where profiles lie."""

    name: ClassVar[str] = "sweep"
    kinds: ClassVar[tuple[str, ...]] = ("memory", "cycles")
    rows: tuple[Row, ...]
    axes: tuple[str, ...]
    columns: tuple[str, ...]
    store: Store
    how: str

    @cached_property
    def table(self) -> pd.DataFrame:
        """A column for each axis, then `fits, max_tile_bytes, margin_bytes, total_cycles, seconds (of a call),
        samples_per_second`, the columns that were asked for, `compile_seconds` (0 for what was kept) and `problem`."""
        found: list[dict[str, Any]] = [
            {
                **{axis: _plain(row.point.get(axis)) for axis in self.axes},
                **dict.fromkeys(self.columns),
                **row.values,
                "compile_seconds": row.compile_seconds,
                "problem": row.problem,
            }
            for row in self.rows
        ]
        return pd.DataFrame(found).convert_dtypes()

    @property
    def folder(self) -> Path:
        """Where the profiles lie."""
        return self.store.folder

    def to_pandas(self) -> pd.DataFrame:
        """The table."""
        return self.table.copy(deep=False)

    def profile(self, row: int) -> Profile:
        """The profile of a row. Errors: `InputError` for a row that there is not, or that has no profile."""
        if not isinstance(row, int) or not 0 <= row < len(self.rows):
            raise InputError(f"there is no row {row!r}", expected=f"a number from 0 to {len(self.rows) - 1}")
        found = self.store.get(self.rows[row].key) if self.rows[row].key else None
        if found is None:
            raise InputError(f"row {row} has no profile: {self.rows[row].problem or 'its file is gone'}")
        return found

    def joined(self, other: Sweep) -> Sweep:
        """These rows and then those of another sweep that keeps its profiles in the same folder."""
        if other.folder != self.folder:
            raise InputError(
                f"profiles lie in {str(self.folder)!r} and in {str(other.folder)!r}", expected="one folder"
            )
        axes, columns = (
            tuple(dict.fromkeys((*mine, *others)))
            for mine, others in ((self.axes, other.axes), (self.columns, other.columns))
        )
        return replace(self, rows=(*self.rows, *other.rows), axes=axes, columns=columns)

    @property
    def told_of(self) -> Profile | None:
        """The profile of the fastest that fits, else of the first that has one."""
        keys = [self.rows[self.best].key] if self.best is not None else [row.key for row in self.rows if row.key]
        return self.store.get(keys[0]) if keys else None

    def pareto(self) -> pd.DataFrame:
        """The rows that fit and that no other that fits beats in cycles a sample and in bytes at once; the fastest
        first. Where samples are not known, cycles of a call."""
        table = self.table
        table = table[table["fits"].fillna(False).astype(bool)].copy()
        if table.empty:
            return table
        order = (
            _seconds(table).to_frame("cost").assign(bytes=table["max_tile_bytes"]).sort_values(["cost", "bytes"]).index
        )
        kept, least = [], None
        for place in order:
            size = int(table.loc[place, "max_tile_bytes"])
            if least is None or size < least:
                kept.append(place)
                least = size
        return table.loc[kept]

    @property
    def best(self) -> int | None:
        """The row that is fastest by sample of those that fit; None where nothing does."""
        found = self.pareto()
        return None if found.empty else int(found.index[0])

    @property
    def sentence(self) -> str:
        """How many points, how many fit, and the fastest."""
        fits = sum(bool(row.values.get("fits")) for row in self.rows)
        failed = sum(bool(row.problem) for row in self.rows)
        text = f"{things_text(len(self.rows), 'point')}, {self.how}: {fits} fit" + (
            f", {failed} could not be compiled" if failed else ""
        )
        if self.best is None:
            return text
        row = self.rows[self.best]
        named = ", ".join(f"{axis}={_asked(row.point[axis])}" for axis in self.axes if axis in row.point)
        cost = (
            f"modelled {cycles_text(row.values['total_cycles'])} a call{self._as_good}, "
            f"fullest tile {bytes_text(row.values['max_tile_bytes'])}"
        )
        return f"{text}; fastest by sample with {named}: {cost}"

    @property
    def _as_good(self) -> str:
        """In brackets, how many others that fit are as fast to within what such numbers usually are off."""
        table = self.table
        costs = sorted(_seconds(table[table["fits"].fillna(False).astype(bool)]).tolist())
        return others_within(self.known_error("cycles"), costs[0], costs[1:])

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: axes, rows, and the numbers of the rows on the Pareto front."""
        table = self.table.astype(object)
        rows = records(table.where(table.notna(), None))
        return {"axes": list(self.axes), "rows": rows, "pareto": [int(each) for each in self.pareto().index]}

    def to_text(self) -> str:
        """The sentence, the table and typical errors."""
        table = self.table.astype(object)
        text = f"{shown(self.sentence)}.\n\n{text_table(table.where(table.notna(), ''))}"
        return "\n".join([text, *self.errors])

    def figure(self, kind: str = "pareto") -> Any:
        """A plotly figure: `"pareto"` (bytes against cycles a sample), `"curves"` (along the first axis) or
        `"parallel"` (all axes and measures as parallel coordinates)."""
        return face(self.name).figure(self, kind)


def _seconds(table: pd.DataFrame) -> pd.Series[float]:
    """Seconds a sample of each row; where samples are not known, of a call."""
    speed = table["samples_per_second"].astype(float)
    return 1 / speed if (speed > 0).all() else table["seconds"].astype(float)


def sweep(
    source: Any,
    grid: Any,
    *,
    arguments: Mapping[str, Any],
    executor: Any = None,
    folder: Any = None,
    columns: Any = None,
    progress: Progress | None = None,
) -> Sweep:
    """Compile a source at every point of a grid: see `wb.sweep`."""
    check_executor(executor)
    more = _columns(columns)
    wanted = {**MEASURED, **more}
    if made_by_hand(source):
        raise InputError("a program made by hand has no arguments to sweep", todo="make a program for each point")
    points = points_of(grid)
    kinds = kinds_of(points, source)
    _check_apart(more, kinds)
    asked = checked_requests(source, points, kinds, arguments)
    running = _Running(points=points, requests=asked, store=Store(folder), wanted=wanted, progress=progress)
    runner = Runner(executor=executor)
    for done in runner.run(running.groups(), running.left):
        running.finish(done)
    rows = tuple(row for row in running.rows if row is not None)
    how = runner.how if any(row.compile_seconds or row.problem for row in rows) else "all known before"
    return Sweep(rows=rows, axes=tuple(kinds), columns=tuple(wanted), store=running.store, how=how)


def checked_requests(
    source: Any, points: Sequence[Point], kinds: Mapping[str, str], arguments: Mapping[str, Any]
) -> list[Any]:
    """The request of each point. Errors: `InputError` and `OptionError` for a value of no use at any of them."""
    for name in kinds:
        if name in arguments:
            raise InputError(f"{name} is {short(arguments[name])}, and the grid varies it", todo=f"leave {name} out")
    requests = Requests(source, kinds, arguments)
    asked = [requests.of(point) for point in points]
    for request in asked:
        check_source(request)
    if "batch_size" in kinds and "inputs" not in kinds and is_function(asked[0]):
        raise InputError(
            "batch_size is varied, and the source is a JAX function, whose inputs fix the batch: every point would be "
            "one program",
            expected="inputs, which are arrays or types of another shape at each point",
            todo='write {"inputs": [(x8,), (x16,)]}; with {"inputs": (x8,), "batch_size": 8} and so on, a mapping for '
            "each point, samples a second are known too",
        )
    return asked


def _columns(columns: Any) -> dict[str, Callable[[Profile], Any]]:
    """What is asked of each profile besides: names of its attributes, or functions of it by name."""
    if columns is None:
        return {}
    named = columns if isinstance(columns, Mapping) else {name: name for name in _names(columns)}
    found: dict[str, Callable[[Profile], Any]] = {}
    words = "a name of Profile, or a function of one"
    for name, read in named.items():
        if isinstance(read, str) and not read.startswith("_") and hasattr(Profile, read):
            found[str(name)] = MEASURED[read] if name == read and read in MEASURED else attrgetter(read)
        elif callable(read):
            found[str(name)] = heard(f"the column {name!r}", read, words)
        else:
            raise InputError(
                f"the column {name!r} is {read!r}",
                expected=words,
                todo=meant(read, [each for each in dir(Profile) if not each.startswith("_")]),
            )
    return found


def _check_apart(columns: Mapping[str, Callable[[Profile], Any]], axes: Collection[str]) -> None:
    """An `InputError` for a column that would hide one that each sweep has."""
    for name, read in columns.items():
        if name in axes or name in ("compile_seconds", "problem") or MEASURED.get(name, read) is not read:
            raise InputError(
                f"the column {name!r} is called as one of the sweep's own",
                expected=f"none of: {', '.join([*axes, *MEASURED, 'compile_seconds', 'problem'])}",
                todo="give it another name",
            )


def _names(columns: Any) -> Sequence[str]:
    if not isinstance(columns, list | tuple) or not all(isinstance(each, str) for each in columns):
        raise InputError(f"columns is {columns!r}", expected='names in a list, or {"name": function}')
    return list(columns)


class _Running:
    """A sweep while it runs: rows in the order of the points, filled as they come."""

    def __init__(
        self, *, points: Sequence[Point], requests: Sequence[Any], store: Store, wanted: Any, progress: Progress | None
    ) -> None:
        self.points, self.requests, self.store, self.wanted = points, requests, store, wanted
        self.rows: list[Row | None] = [None] * len(points)
        self._keys: dict[int, str] = {}
        self._same: dict[str, list[int]] = {}
        self._progress = progress
        self._bar: Any = _bar(len(points)) if progress is None else None

    def left(self) -> int:
        """Points without a row."""
        return sum(row is None for row in self.rows)

    def groups(self) -> Iterator[Group]:
        """Jobs in groups of one trace, traced as they are asked for; what is kept already is a row at once."""
        for numbers in _alike(self.requests):
            group: Group = []
            traced = None
            for number in numbers:
                traced, job = self._job(number, traced)
                group += [job] if job is not None else []
                if len(group) == TOGETHER:
                    yield group
                    group = []
            if group:
                yield group

    def _job(self, number: int, traced: Any) -> tuple[Any, Job | None]:
        request = self.requests[number]
        try:
            traced, graph = traced_graph(request, traced)
            ipus = needed_ipus(request, graph)
        except WorkbenchError as problem:
            self._put(number, Row(point=self.points[number], values={}, problem=str(problem)))
            return traced, None
        key = cache.content(graph, request.options, request.target, ipus).key
        kept = self.store.get(key)
        if kept is not None:
            self._measured(number, kept, key, 0.0)
            return traced, None
        self._keys[number] = key
        first = self._same.setdefault(key, [])
        first.append(number)
        if len(first) > 1:  # an equal point is on its way
            return traced, None
        return traced, Job(number=number, graph=graph, options=request.options, target=request.target, ipus=ipus)

    def finish(self, done: Done) -> None:
        """Put what came of a job into its row, and into those of equal points."""
        key = self._keys[done.number]
        profile = None if done.profile is None else self.store.keep(key, done.profile)
        for place, number in enumerate(self._same.pop(key)):
            if profile is None:
                self._put(number, Row(point=self.points[number], values={}, problem=done.problem))
            else:
                self._measured(number, profile, key, 0.0 if place else done.seconds)

    def _measured(self, number: int, profile: Profile, key: str, seconds: float) -> None:
        values = {name: _plain(read(profile)) for name, read in self.wanted.items()}
        self._put(number, Row(point=self.points[number], values=values, key=key, compile_seconds=round(seconds, 3)))

    def _put(self, number: int, row: Row) -> None:
        self.rows[number] = row
        done = len(self.rows) - self.left()
        if self._progress is not None:
            said = row.problem or ("fits" if row.values.get("fits") else "does not fit")
            self._progress(f"point {done} of {len(self.rows)}: {said}")
        else:
            self._bar.update(1)
            if done == len(self.rows):
                self._bar.close()


def _bar(count: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=count, desc="sweep", unit="point", delay=1, leave=False, disable=None)


def _alike(requests: Sequence[Any]) -> Iterator[list[int]]:
    """Numbers of requests that share a trace, together, in the order in which the first of each came."""
    groups: list[list[int]] = []
    for number, request in enumerate(requests):
        for group in groups[-RECENT:]:
            if request.same_trace(requests[group[0]]):
                group.append(number)
                break
        else:
            groups.append([number])
    yield from groups


RECENT = 64  # groups a request is held against


def _plain(value: Any) -> Any:
    """A value as a cell: numbers, texts and None as they are, arrays by type and shape, all else as its text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple) and any(map(_is_array, value)):
        return ", ".join(str(_plain(each)) for each in value)
    if _is_array(value):
        return f"{np.dtype(value.dtype).name}[{','.join(map(str, value.shape))}]"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return getattr(value, "name", None) or str(value)


def _asked(value: Any) -> str:
    cell = _plain(value)
    return repr(value) if cell is value or not isinstance(value, list | tuple) else f"({cell})"


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


__all__ = ["Row", "Sweep", "checked_requests", "sweep"]
