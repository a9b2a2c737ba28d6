"""One compile that another process can do: a traced graph, options and a target go in, a profile file comes out.

Neither Keras nor JAX is imported for it. What travels is pickled by the executor between this process and those it
started or was connected to; nothing is ever unpickled from a file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.graph import Graph
from workbench.engine.options import Options
from workbench.engine.target import Target
from workbench.errors import WorkbenchError
from workbench.profiler.advice.kept_trace import keep_trace
from workbench.profiler.collect import collect
from workbench.profiler.fidelity import typical_errors
from workbench.profiler.storage import profile_bytes

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
        profile = profile_bytes(keep_trace(collect(compiled, typical_errors()), job.options.get(EXECUTION)))
    except (WorkbenchError, MemoryError) as problem:
        seconds = time.perf_counter() - start
        return Done(number=job.number, seconds=seconds, problem=str(problem) or type(problem).__name__), like
    return Done(number=job.number, seconds=time.perf_counter() - start, profile=profile), compiled


__all__ = ["Done", "Job", "run_jobs"]
