"""Requests compiled at once on an executor, for whoever needs profiles and no executables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from workbench.errors import InputError, WorkbenchError
from workbench.executable.compile import needed_ipus, traced_graph
from workbench.profiler.profile import Profile
from workbench.profiler.storage import profile_from
from workbench.sweeps.jobs import Done, Job
from workbench.sweeps.run import Runner, check_executor, width_of

Measured = Iterator[tuple[int, "Profile | WorkbenchError"]]


def measure_on(executor: Any) -> tuple[Callable[[Sequence[Any], Any], Measured] | None, int]:
    """How to compile requests on an executor, and how many at once; none and one without an executor."""
    check_executor(executor)
    if executor is None:
        return None, 1
    return lambda requests, like: _measured(requests, like, executor), width_of(executor)


def _measured(requests: Sequence[Any], like: Any, executor: Any) -> Measured:
    jobs: list[list[Job]] = []
    for number, request in enumerate(requests):
        try:
            _, graph = traced_graph(request, like.traced if request.same_trace(like.request) else None)
            ipus = needed_ipus(request, graph)
        except WorkbenchError as problem:
            yield number, problem
            continue
        jobs.append([Job(number=number, graph=graph, options=request.options, target=request.target, ipus=ipus)])
    for done in Runner(executor=executor).run(jobs, lambda: len(jobs)):
        yield done.number, _result(done)


def _result(done: Done) -> Profile | WorkbenchError:
    return InputError(done.problem) if done.profile is None else profile_from(done.profile)


__all__ = ["measure_on"]
