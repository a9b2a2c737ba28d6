"""The executed blocks as Chrome trace JSON, which Perfetto opens; one microsecond there is one of our cycles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.base.files import whole_file
from workbench.profiler.profile import Profile
from workbench.profiler.registry import export
from workbench.profiler.timeline import BLOCK_COLUMNS, block_rows, renamed

EVENTS_PER_FILE = 500_000
LANES = ("compute", "exchange", "sync", "host", "inter_ipu", "collective")


@export("chrome_trace")
def to_chrome_trace(profile: Profile, path: str | Path, events_per_file: int = EVENTS_PER_FILE) -> list[Path]:
    """Write the executed blocks as Chrome trace JSON, a file per `events_per_file`; returns the files.

    They are `path`, and `path` with `.2`, `.3` … before its ending for what is beyond.
    A process per IPU, a thread per cause; `ts` and `dur` are cycles.
    """
    first = Path(path)
    events = _events(profile)
    written: list[Path] = []
    while chunk := list(islice(events, events_per_file)) or not written:
        number = len(written) + 1
        name = first if number == 1 else first.with_suffix(f".{number}{first.suffix}")
        _write(profile, name, chunk if isinstance(chunk, list) else [])
        written.append(name)
    return written


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


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    steps = profile.tables["steps"]
    columns = (steps[name].tolist() for name in ("id", "name", "layer"))
    named = {step: (name, layer) for step, name, layer in zip(*columns, strict=True)}
    for values in block_rows(profile):
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
