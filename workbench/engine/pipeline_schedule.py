"""Pipeline schedules: which stage works on which micro-batch in which column, and when an IPU waits.

A column is what the IPUs do at the same time; it lasts as long as its slowest IPU. A micro-batch walks a path of
elements, a column each: the forward stages 0..N-1, then in training the backward stages N-1..0, S elements in all.
Micro-batches enter in rounds of S columns: the j-th of a round enters at the j-th offset of the schedule.

Grouped: every offset, so that an IPU runs all its elements in each column, later elements first. Interleaved: the
circular union of the path's IPUs, so that no IPU is asked twice in a column. Sequential: offset 0 alone.

With stages recomputed, the recomputation for a micro-batch runs in the column before its backward pass, which is one
in which the forward pass of the stage has its turn, behind it.

Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/tools/pipeline_util.cc, visitors/
pipeline_visitor.cc, pipeline_visitor_utils.h; stash depths passes/pipeline_fifo_inserter.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workbench.base.arrays import ceil_div
from workbench.base.causes import Phase
from workbench.base.units import things_text
from workbench.errors import InputError, UnsupportedError

WorkDirection = Literal["forward", "recompute", "backward"]
SCHEDULES = ("Grouped", "Interleaved", "Sequential")
STASH_FACTOR = {"Grouped": 2, "Interleaved": 1, "Sequential": 0}
IO_COLUMNS = 2  # more columns when input and output overlap with compute: input a column ahead, output one behind


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """One stage working on one micro-batch. In a repeated column the micro-batch is that of the first repetition.

    `row` is the offset the work belongs to, by number: of a recomputation that of the forward pass it stands behind.
    """

    stage: int
    direction: WorkDirection
    micro_batch: int
    row: int = 0

    def __str__(self) -> str:
        return f"{self.direction[0].upper()}{self.stage}:{self.micro_batch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What runs at the same time: per IPU its work, in order.

    `turns` are the elements whose turn it is, each with the micro-batch that is there, or would be before the first
    has come and after the last: FIFOs turn with their element while something in them is still wanted.
    """

    work: tuple[tuple[StageWork, ...], ...]
    phase: Phase
    turns: tuple[tuple[int, int], ...] = ()

    def later(self, micro_batches: int) -> Column:
        """The same column so many micro-batches later."""
        if not micro_batches:
            return self
        work = tuple(
            tuple(replace(item, micro_batch=item.micro_batch + micro_batches) for item in cell) for cell in self.work
        )
        turns = tuple((element, number + micro_batches) for element, number in self.turns)
        return replace(self, work=work, turns=turns)

    def __str__(self) -> str:
        cells = " | ".join(" ".join(map(str, item)) or "-" for item in self.work)
        return f"{self.phase}: {cells}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Columns that follow each other, `times` times; each time every micro-batch number is `stride` higher."""

    columns: tuple[Column, ...]
    times: int = 1
    stride: int = 1

    def __str__(self) -> str:
        return "\n".join([f"x{self.times}", *(f"  {column}" for column in self.columns)])


def stash_depth(schedule: str, stages: int, stage: int) -> int:
    """Slots of the FIFO between forward and backward of a stage, besides the one being filled."""
    return STASH_FACTOR[schedule] * (stages - 1 - stage)


def circular_union(devices: Sequence[int]) -> tuple[int, ...]:
    """Rotations of a path that differ from each other at every position, the first ones found from 0 up."""
    size, found = len(devices), [0]
    for shift in range(1, size):
        apart = (
            devices[(place + shift) % size] != devices[(place + kept) % size] for kept in found for place in range(size)
        )
        if all(apart):
            found.append(shift)
    return tuple(found)


def offsets(schedule: str, path: Sequence[int]) -> tuple[int, ...]:
    """The columns of a round in which a micro-batch enters; `path` is the IPU of each element."""
    if schedule not in SCHEDULES:
        raise InputError(f"the pipeline schedule is {schedule!r}", expected=f"one of: {', '.join(SCHEDULES)}")
    if schedule == "Grouped":
        return tuple(range(len(path)))
    return circular_union(path) if schedule == "Interleaved" else (0,)


def path_of(devices: Sequence[int], training: bool) -> tuple[int, ...]:
    """The IPU of each element: forward, and in training back."""
    return (*devices, *reversed(devices)) if training else tuple(devices)


def overlap_length(schedule: str, devices: Sequence[int], *, training: bool) -> int:
    """Micro-batches of one round."""
    return len(offsets(schedule, path_of(devices, training)))


def check_count(
    schedule: str,
    stages: int,
    count: int,
    *,
    training: bool,
    devices: Sequence[int] | None = None,
    overlapped_io: bool = False,
) -> None:
    """The micro-batches must fill whole rounds; an `InputError` says what would.

    `overlapped_io`: input and output on tiles of their own need two micro-batches more than a round, any number above.
    """
    placed = tuple(range(stages)) if devices is None else tuple(devices)
    _check_devices(schedule, stages, placed, training)
    multiple = overlap_length(schedule, placed, training=training)
    least = multiple + IO_COLUMNS if overlapped_io else multiple
    short = count < least or (count % multiple != 0 and not overlapped_io)
    if stages > 1 and short:
        wanted = least if overlapped_io else max(multiple, ceil_div(count, multiple) * multiple)
        error = InputError(
            f"gradient_accumulation_steps is {count}, for {stages} stages under the {schedule} schedule",
            expected=f"at least {least}" if overlapped_io else f"a multiple of {multiple}",
            todo=f"set gradient_accumulation_steps={wanted}",
        )
        error.mends = {"gradient_accumulation_steps": wanted}
        raise error


def _check_devices(schedule: str, stages: int, devices: tuple[int, ...], training: bool) -> None:
    if len(devices) != stages:
        raise InputError(
            f"device_mapping has {things_text(len(devices), 'entry')} for {things_text(stages, 'stage')}",
            expected="the IPU of each stage",
        )
    shared = {ipu: [stage for stage, at in enumerate(devices) if at == ipu] for ipu in devices}
    twice = next((ipu for ipu, held in shared.items() if len(held) > 1), None)
    if schedule == "Interleaved" and training and twice is not None:
        raise UnsupportedError(
            f"device_mapping has the stages {shared[twice]} on IPU {twice}, under the Interleaved schedule in training",
            expected="an IPU of its own for each stage",
            todo="use the Grouped or the Sequential schedule",
        )


def _check_recomputed(schedule: str, stages: int, recomputed: Sequence[int]) -> None:
    """A stage computes again behind its forward pass of the column before; Sequential has none there."""
    unknown = [stage for stage in recomputed if not 0 <= stage < stages]
    if unknown:
        raise InputError(f"the stages {unknown} are to be computed again", expected=f"stages 0 to {stages - 1}")
    if recomputed and schedule == "Sequential":
        raise InputError(
            f"the stages {sorted(recomputed)} are to be computed again in the column before their backward pass, "
            "under the Sequential schedule, where nothing else runs in it",
            expected="the Grouped or the Interleaved schedule, or recomputation within the backward pass",
            todo="set the recomputation mode to 'RecomputeAndBackpropagateInterleaved'",
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """A schedule of `count` micro-batches over stages on `devices`."""

    schedule: str
    devices: tuple[int, ...]
    count: int
    training: bool
    recomputed: frozenset[int]
    rounds: int = field(init=False)
    offsets: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        path = path_of(self.devices, self.training)
        object.__setattr__(self, "rounds", len(path))
        object.__setattr__(self, "offsets", offsets(self.schedule, path))

    def start(self, micro_batch: int) -> int:
        """The column in which a micro-batch enters, or would."""
        turn, row = divmod(micro_batch, len(self.offsets))
        return turn * self.rounds + self.offsets[row]

    def column(self, number: int, phase: Phase) -> Column:
        """All work of a column, by IPU. Elements of one IPU run from the last to the first: each frees what the one
        before hands on; recomputations come behind all of them."""
        ran: list[tuple[int, StageWork]] = []
        turns = []
        for row, offset in enumerate(self.offsets):
            turn, element = divmod(number - offset, self.rounds)
            micro_batch = turn * len(self.offsets) + row
            turns.append((element, micro_batch))
            if 0 <= micro_batch < self.count:
                ran.append((element, self._work(element, micro_batch, row)))
        ran.sort(key=lambda item: -item[0])
        again = self._recomputations(number) if self.recomputed else []
        cells = tuple(
            tuple(work for work in (*(work for _, work in ran), *again) if self.devices[work.stage] == ipu)
            for ipu in range(max(self.devices) + 1)
        )
        return Column(work=cells, phase=phase, turns=tuple(turns))

    def _work(self, element: int, micro_batch: int, row: int) -> StageWork:
        stages = len(self.devices)
        if element < stages:
            return StageWork(stage=element, direction="forward", micro_batch=micro_batch, row=row)
        return StageWork(stage=self.rounds - 1 - element, direction="backward", micro_batch=micro_batch, row=row)

    def _recomputations(self, number: int) -> list[StageWork]:
        """What has its backward pass in the next column."""
        found = []
        for row, offset in enumerate(self.offsets):
            turn, element = divmod(number + 1 - offset, self.rounds)
            stage = self.rounds - 1 - element
            micro_batch = turn * len(self.offsets) + row
            if element >= len(self.devices) and stage in self.recomputed and 0 <= micro_batch < self.count:
                beside = self.offsets.index((number - stage) % self.rounds)
                found.append(StageWork(stage=stage, direction="recompute", micro_batch=micro_batch, row=beside))
        return sorted(found, key=lambda work: -work.stage)

    def period(self) -> tuple[int, int]:
        """Columns after which a steady schedule is the same, and the micro-batches that have entered meanwhile."""
        gaps = {later - earlier for earlier, later in zip(self.offsets, (*self.offsets[1:], self.rounds), strict=True)}
        return (gaps.pop(), 1) if len(gaps) == 1 else (self.rounds, len(self.offsets))


def stretches(
    schedule: str,
    stages: int,
    count: int,
    *,
    training: bool = True,
    devices: Sequence[int] | None = None,
    recomputed: Sequence[int] = (),
    overlapped_io: bool = False,
) -> tuple[Stretch, ...]:
    """One call of a pipeline over `count` micro-batches; what repeats is given once.

    `devices` is the IPU of each stage, default one each in order; `recomputed` are the stages with a recomputation.
    """
    check_count(schedule, stages, count, training=training, devices=devices, overlapped_io=overlapped_io)
    _check_recomputed(schedule, stages, recomputed)
    plan = _Plan(schedule, tuple(devices or range(stages)), count, training, frozenset(recomputed))
    first, last, end = plan.offsets[-1], plan.start(count), plan.start(count - 1) + plan.rounds
    length, stride = plan.period()
    first, last = min(first, last), max(first, last)
    times, rest = divmod(last - first, length)
    parts = [
        Stretch(columns=tuple(plan.column(number, "fill") for number in range(first))),
        Stretch(columns=_columns(plan, first, first + length * bool(times)), times=times, stride=stride),
        Stretch(columns=_columns(plan, last - rest, last)),
        Stretch(columns=tuple(plan.column(number, "drain") for number in range(last, end))),
    ]
    return tuple(part for part in parts if part.columns)


def _columns(plan: _Plan, first: int, last: int) -> tuple[Column, ...]:
    return tuple(plan.column(number, "steady") for number in range(first, last))
