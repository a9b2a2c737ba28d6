"""Pipelines: the order in which stages run, offsets, stashes, values and losses, and the driver's own schedules."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.pipeline_programs import between_ipus_percent, losses_of, printed, worked_together
from workbench.engine.frontends.staging.scheduled import HostFifo
from workbench.engine.frontends.staging.stages import evenly
from workbench.engine.pipeline_schedule import (
    IO_COLUMNS,
    Column,
    StageWork,
    check_count,
    circular_union,
    overlap_length,
    stash_depth,
    stretches,
)
from workbench.errors import InputError

SCHEDULES = {"grp": "Grouped", "int": "Interleaved", "seq": "Sequential"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LISTS = re.compile(r"\[\d+(?:, ?\d+)*\]")


def order(case: Case) -> Any:
    """Stages in the order they run, a capital letter each, forward alone."""
    schedule = SCHEDULES[case["id"].split("-")[1]]
    found = re.search(rf"({LISTS.pattern}), (\d+)", said(case))
    if not found:
        return NotRun("stages or mini-batches are not stated")
    devices = _numbers(found[1])
    columns = _columns(schedule, devices, int(found[2]), training=False)
    rows = overlap_length(schedule, devices, training=False)
    return "".join(_letters(column, schedule, rows) for column in columns).upper()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _columns(
    schedule: str, devices: Sequence[int], count: int, *, training: bool, recomputed: Sequence[int] = ()
) -> list[Column]:
    found = stretches(schedule, len(devices), count, training=training, devices=devices, recomputed=recomputed)
    return [
        column.later(turn * stretch.stride)
        for stretch in found
        for turn in range(stretch.times)
        for column in stretch.columns
    ]


def _works(column: Column) -> list[StageWork]:
    return [work for cell in column.work for work in cell]


def _letters(column: Column, schedule: str, rows: int = 1) -> str:
    """The stages of a column: Grouped the last first, which frees what the one before hands on; else by offset.

    Micro-batches take the offsets in turn; a column that stands for several has the offsets of the first.
    """
    works = sorted(_works(column), key=lambda work: -work.stage if schedule == "Grouped" else work.micro_batch % rows)
    return "".join(LETTERS[work.stage] for work in works)


def _row(column: Column, size: int, direction: str = "forward") -> str:
    """The stages of a column at the places of their offsets."""
    places = ["."] * size
    for work in _works(column):
        if work.direction == direction:
            places[work.row] = LETTERS[work.stage]
    return "".join(places)


def schedule_text(case: Case) -> Any:
    """The driver's schedule of four elements as text, a row of four for a column."""
    size = 4
    name = case["id"].removeprefix("SCHED-")
    columns = _columns("Grouped", range(size), 2 * size, training=False)
    full = next(_letters(column, "Grouped") for column in columns if column.phase == "steady")
    up = [_row(column, size) for column in columns[:size]]
    down = [_row(column, size) for column in columns[2 * size :]]
    down += ["." * size] * (size - len(down))
    if name.startswith("ramp") and "recomp" in name:
        return _recomputing(size // 2, down="down" in name)
    rows = {
        "padleft": ["." * size] + [full] * size,
        "padright": [full] * size + ["." * size],
        "resize1": [full],
        "overlapio": [full] * (size + IO_COLUMNS),
        "concat": [full] * size + [full.translate(str.maketrans("abcd", "wxyz"))] * size,
        "rampup": up,
        "rampdown": down,
    }
    if name in rows:
        return "".join(rows[name])
    if found := re.fullmatch(r"ramp(up|down)-io(\d)", name):
        ahead, behind = int(found[2]), IO_COLUMNS - int(found[2])  # columns the part comes after the input
        idle = ["." * size]
        padded = (idle * ahead + up + [full] * behind) if found[1] == "up" else ([full] * ahead + down + idle * behind)
        return "".join(padded)
    return full * size


def _recomputing(stages: int, *, down: bool) -> str:
    """Recomputations while a pipeline fills or drains, beside the forward passes whose turn it is."""
    size, count = 2 * stages, 4 * stages
    columns = _columns("Grouped", range(stages), count, training=True, recomputed=range(stages))
    first = count if down else 0
    rows = [_row(column, size, "recompute") for column in columns[first : first + size]]
    return "".join(rows + ["." * size] * (size - len(rows)))


def stash(case: Case) -> Any:
    """Depths of the FIFOs between forward and backward stages, and what a FIFO hands out."""
    name = case["id"].removeprefix("FIFO-")
    if name == "inference":
        columns = _columns("Grouped", range(3), 6, training=False)
        return sum(work.direction == "backward" for column in columns for work in _works(column))
    if name == "depth-grouped":
        return f"{stash_depth('Grouped', 2, 0)}*(S-1-s)"
    if name == "op-loop":
        depth = int(re.search(r"fifo\(\w+, ?(\d+)\)", said(case))[1])  # type: ignore[index]
        return {f"repeat{turns}": _fed_back(depth, turns) for turns in _numbers(said(case)) if turns > 1}
    if name == "op-multidevice":
        return between_ipus_percent()
    if found := re.search(r"(\w+) training pipeline of (\d+) stages", said(case)):
        return _depths(found[1], int(found[2]))
    return NotRun(f"no FIFO called {name!r}")


def _fed_back(depth: int, turns: int) -> int:
    """What a FIFO of zeros, begun with ones and fed by itself, hands out in the end."""
    fifo, value = HostFifo(depth, 0), 1
    for _ in range(turns):
        value = fifo.turn(value)
    return value


def _depths(schedule: str, stages: int) -> dict[str, Any]:
    """By backward stage: of what the stage was handed and of what it made; the first stage is handed nothing."""
    found: dict[str, Any] = {}
    for stage in reversed(range(stages)):
        depth = stash_depth(schedule, stages, stage)
        found[f"stage{stage}_bwd"] = [depth] * (2 if stage else 1) if depth else "no fifo"
    return found


def offsets(case: Case) -> Any:
    """Interleaved offsets by list of IPUs: of the lists in the case's words, of all short ones, and there and back."""
    short = [list(each) for size in range(1, 5) for each in itertools.product(range(4), repeat=size)]
    longer = [list(each) for size in (5, 6) for each in itertools.product(range(3), repeat=size)]
    back = [each + each[::-1] for each in short]
    return {str(each): list(circular_union(each)) for each in (*_lists(case), *short, *longer, *back)}


def _lists(case: Case) -> list[list[int]]:
    return [_numbers(text) for text in LISTS.findall(said(case))]


def stage_order(case: Case) -> Any:
    """That no column of an interleaved pipeline asks an IPU twice."""
    devices = _lists(case)[0]
    count = 4 * overlap_length("Interleaved", devices, training=False)
    columns = _columns("Interleaved", devices, count, training=False)
    twice = sum(len({devices[w.stage] for w in _works(c)}) < len(_works(c)) for c in columns)
    return f"{twice} steps have an IPU twice" if twice else "for every step, stages executed have distinct IPUs"


def popart(case: Case) -> Any:
    """Cycles of PopART's phases, or the IPU of each of several equal layers."""
    if case["id"] == "POPART-autovg":
        layers = int(re.search(r"(\d+) equal layers", said(case))[1])  # type: ignore[index]
        return {count: evenly(layers, int(count)) for count in re.findall(r"(\d+) IPUs", said(case))}
    return {f"S={s},B={b}": _phases(s, b) for s in range(2, 9) for b in range(s, 33)}


def _phases(stages: int, count: int) -> dict[str, list[int]]:
    """First and last cycle in which stages begin, all run, or end; a stage runs in a cycle for each micro-batch.

    PopART asks for as many micro-batches as stages, in any number above: the columns are those of whole rounds, cut.
    """
    whole = -(-count // stages) * stages
    columns = _columns("Grouped", range(stages), whole, training=False)
    running = [sum(work.micro_batch < count for work in _works(column)) for column in columns]
    starting = [number for number, column in enumerate(columns) if column.phase == "fill"]
    busy = [number for number, amount in enumerate(running) if amount]
    ending = [number for number in busy if all(w.stage for w in _works(columns[number]) if w.micro_batch < count)]
    full = [number for number in busy if number not in starting and number not in ending]
    return {name: [part[0], part[-1]] for name, part in (("fill", starting), ("main", full), ("flush", ending))}


def errors(case: Case) -> Any:
    """What is said of a number of micro-batches that cannot be, in the workbench's words."""
    if case["id"].endswith("-io"):
        return _said(5, overlapped_io=True)
    return [_said(7), _said(1)]


def _said(count: int, **more: Any) -> str:
    try:
        check_count("Grouped", 2, count, training=True, **more)
    except InputError as problem:
        return str(problem)
    return ""


def values(case: Case) -> Any:
    """What a pipeline of two stages prints for every mini-batch."""
    words = case["id"].split("-")
    return printed(words[-1], SCHEDULES[words[1]])


def mapped(case: Case) -> Any:
    """Losses of a pipeline with its stages on other IPUs, the same on each map."""
    results = [losses_of(devices) for devices in _lists(case)[:2]]
    return results[0] if all(found == results[0] for found in results) else results


def overlap(case: Case) -> Any:
    """Cycles in which two IPUs work at once; under Grouped their share of those in which one works at least."""
    schedule = SCHEDULES[case["id"].split("-")[1]]
    both, some = worked_together(schedule, 8 if schedule == "Grouped" else 6)
    return round(both / some, 4) if schedule == "Grouped" else both
