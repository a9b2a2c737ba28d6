"""One compile that another process can do: a traced graph, options and a target go in, a profile file comes out.

Neither Keras nor JAX is imported for it. What travels is pickled by the executor between this process and those it
started or was connected to; nothing is ever unpickled from a file.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.target import Target
from workbench.errors import WorkbenchError
from workbench.profiler.advice.kept_trace import keep_trace
from workbench.profiler.collect import collect
from workbench.profiler.fidelity import typical_errors
from workbench.profiler.profile import Profile
from workbench.profiler.storage import load_profile, save_profile

EXECUTION = "profile.execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A point of a sweep, ready to compile."""

    number: int
    graph: Graph
    options: Options
    target: Target
    ipus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of a job: a profile file's bytes, or the problem; and how long it took."""

    number: int
    seconds: float
    profile: bytes | None = None
    problem: str = ""


def run_jobs(jobs: Sequence[Job]) -> list[Done]:
    """Compile jobs one after another, each taking over from the one before what both have in common."""
    found, like = [], None
    for job in jobs:
        done, like = _run(job, like)
        found.append(done)
    return found


def _run(job: Job, like: Compiled | None) -> tuple[Done, Compiled | None]:
    start = time.perf_counter()
    try:
        compiled = compile_graph(job.graph, job.target, job.options, ipus=job.ipus, like=like)
        profile = _file_of(keep_trace(collect(compiled, typical_errors()), job.options.get(EXECUTION)))
    except (WorkbenchError, MemoryError) as problem:
        seconds = time.perf_counter() - start
        return Done(number=job.number, seconds=seconds, problem=str(problem) or type(problem).__name__), like
    return Done(number=job.number, seconds=time.perf_counter() - start, profile=profile), compiled


def _file_of(profile: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        path = Path(folder) / "point.wbprofile"
        save_profile(profile, path)
        return path.read_bytes()


def profile_of(file: bytes) -> Profile:
    """The profile whose file has these bytes."""
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        path = Path(folder) / "point.wbprofile"
        path.write_bytes(file)
        return load_profile(path)


__all__ = ["Done", "Job", "profile_of", "run_jobs"]
