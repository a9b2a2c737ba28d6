"""The executed blocks as Chrome trace JSON, which Perfetto opens; one microsecond there is one of our cycles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.base.arrays import ceil_div
from workbench.base.files import whole_file
from workbench.base.whole import MOST_COUNT, whole
from workbench.errors import InputError
from workbench.profiler.profile import Profile
from workbench.profiler.registry import export
from workbench.profiler.timeline import BLOCK_COLUMNS, BlockCounts, block_rows, renamed

EVENTS_PER_FILE = 500_000
MOST_FILES = 20
LANES = ("compute", "exchange", "sync", "host", "inter_ipu", "collective")


@export("chrome_trace")
def to_chrome_trace(
    profile: Profile,
    path: str | Path,
    events_per_file: int = EVENTS_PER_FILE,
    *,
    cycles_from: int = 0,
    cycles_to: int | None = None,
) -> list[Path]:
    """Write the executed blocks as Chrome trace JSON, a file per `events_per_file`; returns the files.

    They are `path`, and `path` with `.2`, `.3` … before its ending for what is beyond.
    A process per IPU, a thread per cause; `ts` and `dur` are cycles. Blocks that touch cycles [cycles_from, cycles_to)
    are written, all if not given; an `InputError` before anything is written if they fill more than 20 files.
    """
    first = Path(path)
    events_per_file = whole("events_per_file", events_per_file, most=MOST_COUNT)
    window = _window_of(profile, events_per_file, cycles_from, cycles_to)
    events = _events(profile, *window)
    written: list[Path] = []
    while chunk := list(islice(events, events_per_file)) or not written:
        number = len(written) + 1
        name = first if number == 1 else first.with_suffix(f".{number}{first.suffix}")
        _write(profile, name, chunk if isinstance(chunk, list) else [])
        written.append(name)
    return written


def _window_of(profile: Profile, events_per_file: int, cycles_from: Any, cycles_to: Any) -> tuple[int, int]:
    """The window asked for, if its blocks fill no more files than anybody opens."""
    end = profile.timeline.root.cycles + 1
    first = whole("cycles_from", cycles_from, least=0)
    last = end if cycles_to is None else whole("cycles_to", cycles_to, least=first)
    counts = BlockCounts(profile)
    events, most = counts.within(first, last), MOST_FILES * events_per_file
    if events > most:
        raise InputError(
            f"{events:,} blocks fill {ceil_div(events, events_per_file):,} files",
            expected=f"at most {MOST_FILES} files of {events_per_file:,} blocks",
            todo=f"write a window: cycles_from={first}, cycles_to={counts.longest(first, most)} fits",
        )
    return first, last


def _write(profile: Profile, path: Path, events: list[dict[str, Any]]) -> None:
    head = json.dumps({"model": profile.name, "unit": "1 us is 1 cycle", "clock_hz": profile.target["clock_hz"]})
    with whole_file(path, text=True) as file:
        file.write(f'{{"otherData": {head}, "traceEvents": [\n')
        file.write(",\n".join(json.dumps(event) for event in [*_names(profile), *events]))
        file.write("\n]}\n")


def _names(profile: Profile) -> Iterator[dict[str, Any]]:
    for ipu in range(profile.ipus):
        yield {"ph": "M", "name": "process_name", "pid": ipu, "tid": 0, "args": {"name": f"IPU {ipu}"}}
        for lane, cause in enumerate(LANES):
            yield {"ph": "M", "name": "thread_name", "pid": ipu, "tid": lane, "args": {"name": cause}}


def _events(profile: Profile, first: int, last: int) -> Iterator[dict[str, Any]]:
    steps = profile.tables["steps"]
    columns = (steps[name].tolist() for name in ("id", "name", "layer"))
    named = {step: (name, layer) for step, name, layer in zip(*columns, strict=True)}
    for values in block_rows(profile, None, first, last):
        row = dict(zip(BLOCK_COLUMNS, values, strict=True))
        shown = ("step", "layer", "direction", "stage", "micro_batch", "iteration")
        yield {
            "ph": "X",
            "name": renamed(*named[row["step"]], row["layer"]),
            "cat": row["cause"],
            "pid": row["ipu"],
            "tid": LANES.index(row["cause"]),
            "ts": row["cycles_from"],
            "dur": row["cycles_to"] - row["cycles_from"],
            "args": {name: row[name] for name in shown},
        }
