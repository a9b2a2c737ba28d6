"""Pipeline schedules: which stage works on which micro-batch in which column, and when an IPU waits.

A column is what the IPUs do at the same time; it lasts as long as its slowest IPU. Stage s runs on IPU s. With N stages
and G micro-batches (accumulation count):

Grouped: forward of stage s takes micro-batch c - s in column c, backward takes c - (2N - 1 - s), where these exist.
Sequential: one micro-batch passes all stages forward and back before the next begins.

Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/tools/pipeline_util.cc, visitors/
pipeline_visitor*; stash depths passes/pipeline_fifo_inserter.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.errors import InputError

Phase = Literal["fill", "steady", "drain"]
SCHEDULES = ("Grouped", "Sequential")
STASH_FACTOR = {"Grouped": 2, "Interleaved": 1, "Sequential": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One stage working on one micro-batch. In a repeated column the micro-batch is that of the first repetition."""

    stage: int
    direction: Literal["forward", "backward"]
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.direction[0].upper()}{self.stage}:{self.micro_batch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What runs at the same time: per stage its work, in order."""

    work: tuple[tuple[Work, ...], ...]
    phase: Phase

    def __str__(self) -> str:
        cells = " | ".join(" ".join(map(str, item)) or "-" for item in self.work)
        return f"{self.phase}: {cells}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Columns that follow each other, `times` times; each time every micro-batch number is one higher."""

    columns: tuple[Column, ...]
    times: int = 1

    def __str__(self) -> str:
        return "\n".join([f"x{self.times}", *(f"  {column}" for column in self.columns)])


def stash_depth(schedule: str, stages: int, stage: int) -> int:
    """Slots of the FIFO between forward and backward of a stage, besides the one being filled."""
    return STASH_FACTOR[schedule] * (stages - 1 - stage)


def check_count(schedule: str, stages: int, count: int, *, training: bool) -> None:
    """The micro-batches must divide into the schedule's overlap; an `InputError` says what would."""
    if schedule not in SCHEDULES:
        raise InputError(f"the pipeline schedule is {schedule!r}", expected=f"one of: {', '.join(SCHEDULES)}")
    multiple = 1 if schedule == "Sequential" else stages * (2 if training else 1)
    if stages > 1 and (count < multiple or count % multiple):
        raise InputError(
            f"gradient_accumulation_steps is {count}, for {stages} stages under the {schedule} schedule",
            expected=f"a multiple of {multiple}",
            todo=f"set gradient_accumulation_steps={max(multiple, -(-count // multiple) * multiple)}",
        )


def stretches(schedule: str, stages: int, count: int, *, training: bool = True) -> tuple[Stretch, ...]:
    """One call of a pipeline over `count` micro-batches; what repeats is given once."""
    check_count(schedule, stages, count, training=training)
    if schedule == "Sequential":
        return (Stretch(columns=_path(stages, training), times=count),)
    span = 2 * stages - 1 if training else stages - 1  # columns before every IPU has all its work
    full = max(0, count - span)
    fill = tuple(_column(c, "fill", stages, count, training) for c in range(count - full))
    drain = tuple(_column(c, "drain", stages, count, training) for c in range(count, count + span))
    steady = (Stretch(columns=(_column(span, "steady", stages, count, training),), times=full),) if full else ()
    ends = [Stretch(columns=part) for part in (fill, drain)]
    return tuple(part for part in (ends[0], *steady, ends[1]) if part.columns)


def _column(column: int, phase: Phase, stages: int, count: int, training: bool) -> Column:
    work = tuple(_cell(stage, column, stages, count, training) for stage in range(stages))
    return Column(work=work, phase=phase)


def _cell(stage: int, column: int, stages: int, count: int, training: bool) -> tuple[Work, ...]:
    """Backward first: it reads what the forward of this column overwrites."""
    back = column - (2 * stages - 1 - stage)
    ahead = column - stage
    cell: list[Work] = []
    if training and 0 <= back < count:
        cell.append(Work(stage=stage, direction="backward", micro_batch=back))
    if 0 <= ahead < count:
        cell.append(Work(stage=stage, direction="forward", micro_batch=ahead))
    return tuple(cell)


def _path(stages: int, training: bool) -> tuple[Column, ...]:
    """One micro-batch through all stages and back."""
    path = [Work(stage=stage, direction="forward", micro_batch=0) for stage in range(stages)]
    back = [Work(stage=stage, direction="backward", micro_batch=0) for stage in reversed(range(stages))]
    return tuple(
        Column(work=tuple((item,) if item.stage == stage else () for stage in range(stages)), phase="steady")
        for item in (path + back if training else path)
    )
