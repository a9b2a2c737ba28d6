"""Pipelines: the order in which stages run, the depth of stashes, and the strings of the driver's own schedules."""

from __future__ import annotations

import re
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from workbench.engine.schedule import Column, stash_depth, stretches
from workbench.errors import InputError

SCHEDULES = {"grp": "Grouped", "int": "Interleaved", "seq": "Sequential"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
IO_COLUMNS = 2  # of a schedule that overlaps its input and output with compute: one before, one after


def order(case: Case) -> Any:
    """Stages in the order they run, a capital letter each, forward alone."""
    schedule = SCHEDULES[case["id"].split("-")[1]]
    devices = re.search(r"\[([\d, ]+)\]", said(case))
    count = re.search(r"\], (\d+)", said(case))
    if not devices or not count:
        return NotRun("stages or mini-batches are not stated")
    stages = len(devices[1].split(","))
    try:
        columns = _columns(schedule, stages, int(count[1]))
    except InputError as problem:
        return NotRun(f"{schedule}: {problem}")
    return "".join(_letters(column) for column in columns).upper()


def _columns(schedule: str, stages: int, count: int) -> list[Column]:
    found = stretches(schedule, stages, count, training=False)
    return [column for stretch in found for _ in range(stretch.times) for column in stretch.columns]


def _letters(column: Column) -> str:
    """The stages of a column, the last first: it frees what the one before hands on."""
    return "".join(LETTERS[item.stage] for cell in reversed(column.work) for item in cell)


def schedule_text(case: Case) -> Any:
    """The driver's schedule of four stages as text, a row of four for a step."""
    stages = 4
    columns = _columns("Grouped", stages, 2 * stages)
    full = next(_letters(column) for column in columns if column.phase == "steady")
    up = [_letters(column).ljust(stages, ".") for column in columns[:stages]]
    down = [_letters(column).rjust(stages, ".") for column in columns[-stages + 1 :]] + ["." * stages]
    name = case["id"].removeprefix("SCHED-")
    shift = re.search(r"io(\d)$", name)
    rows = {"padleft": ["." * stages] + [full] * stages, "resize1": [full], "overlapio": [full] * (stages + IO_COLUMNS)}
    if name in rows:
        return "".join(rows[name])
    if name in ("grouped", "basic"):
        return full * stages
    if name == "concat":
        later = full.translate(str.maketrans("abcd", "wxyz"))
        return full * stages + later * stages
    if name.startswith("rampup"):
        return "".join(_delayed(up, full, shift))
    if name.startswith("rampdown") and "recomp" not in name:
        return "".join(_drained(down, full, shift))
    return NotRun(f"the schedule {name!r} is not one of the engine's")


def _delayed(rows: list[str], full: str, shift: re.Match[str] | None) -> list[str]:
    """Ramp up; with input and output overlapped, a part begins as many columns later as it comes after the input."""
    if shift is None:
        return rows
    idle = int(shift[1])
    return ["." * len(full)] * idle + rows + [full] * (IO_COLUMNS - idle)


def _drained(rows: list[str], full: str, shift: re.Match[str] | None) -> list[str]:
    if shift is None:
        return rows
    more = int(shift[1])
    return [full] * more + rows + ["." * len(full)] * (IO_COLUMNS - more)


def stash(case: Case) -> Any:
    """Depths of the FIFOs between forward and backward stages."""
    name = case["id"].removeprefix("FIFO-")
    if name == "inference":
        columns = _columns("Grouped", 3, 6)
        return sum(item.direction == "backward" for column in columns for cell in column.work for item in cell)
    if name == "depth-grouped":
        return f"{stash_depth('Grouped', 2, 0)}*(S-1-s)"
    if found := re.search(r"(\w+) training pipeline of (\d+) stages", said(case)):
        return _depths(found[1], int(found[2]))
    return NotRun("FIFOs over tensors sharded on several IPUs are not modelled")


def _depths(schedule: str, stages: int) -> dict[str, Any]:
    """By backward stage: of what the stage was handed and of what it made; the first stage is handed nothing."""
    found: dict[str, Any] = {}
    for stage in reversed(range(stages)):
        depth = stash_depth(schedule, stages, stage)
        found[f"stage{stage}_bwd"] = [depth] * (2 if stage else 1) if depth else "no fifo"
    return found


def interleaved(_case: Case) -> NotRun:
    """Offsets of stages and what follows from them."""
    return NotRun("the Interleaved schedule is not there yet")
