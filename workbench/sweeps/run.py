"""Jobs handed out: here, to processes of this machine, or to an executor that is given; rows come as they are done."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from workbench.base.host import host_bytes
from workbench.errors import InputError
from workbench.sweeps.jobs import Done, Job, run_jobs

WORTH_SECONDS = 8.0  # of work left: starting processes and importing the engine in them takes some two
BYTES_EACH = 1 << 30  # of memory for a process: a compile of a large model takes half of it
TOGETHER = 8  # jobs of one trace that go to one worker together
AGAIN = 3  # times that a job is handed out whose worker ended

Group = list[Job]


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs groups of jobs that share a trace. `how` says where, once it has decided."""

    executor: Any = None
    how: str = "in this process"
    _seconds: list[float] = field(default_factory=list)

    def run(self, groups: Iterable[Group], left: Callable[[], int]) -> Iterator[Done]:
        """Each job's outcome as it comes; `left` is how many points are not done yet."""
        if self.executor is not None:
            self.how = f"on {type(self.executor).__name__}"
            yield from _Pool(make=lambda: self.executor, width=width_of(self.executor)).run(groups)
            return
        rest = iter(groups)
        for group in rest:
            yield from self._here(group)
            count = workers()
            if count > 1 and left() * sum(self._seconds) / max(1, len(self._seconds)) > WORTH_SECONDS:
                self.how = f"on {count} processes"
                yield from _Pool(make=partial(processes, count), width=count).run(rest)
                return

    def _here(self, group: Group) -> Iterator[Done]:
        for done in run_jobs(group):
            self._seconds.append(done.seconds)
            yield done


def workers() -> int:
    """Processes that this machine has cores and memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = host_bytes()
    return max(1, min(cores, cores if memory is None else memory // BYTES_EACH))


def processes(count: int) -> Any:
    """Processes that live on for the next sweep, and need no guard in the script that starts them."""
    from loky import get_reusable_executor

    return get_reusable_executor(max_workers=count, timeout=60)


def check_executor(executor: Any) -> None:
    """An `InputError` for what has no `submit`, and for a class of executors."""
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise InputError(
            f"executor is {executor!r}",
            expected="an executor of concurrent.futures, or Dask's client.get_executor()",
            todo="leave executor out for processes of this machine",
        )


def width_of(executor: Any) -> int:
    """How many jobs an executor does at once; 8 where it does not say."""
    return int(getattr(executor, "_max_workers", 0) or 8)


@dataclass(slots=True, kw_only=True)
class _Pool:
    """Groups on an executor, a few more than it has workers at a time, so that points are traced meanwhile."""

    make: Callable[[], Any]
    width: int
    _out: dict[Future[list[Done]], tuple[Group, int]] = field(default_factory=dict)

    def run(self, groups: Iterable[Group]) -> Iterator[Done]:
        executor, again = self.make(), deque[tuple[Group, int]]()
        waiting = iter(groups)
        try:
            while True:
                while len(self._out) < 2 * self.width and (found := _next(again, waiting)) is not None:
                    executor = self._submit(executor, *found)
                if not self._out:
                    return
                finished, _ = wait(self._out, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield from self._outcome(future, again)
        finally:
            for future in self._out:
                future.cancel()

    def _submit(self, executor: Any, group: Group, times: int) -> Any:
        """Hand out a group; a broken executor is made anew where that can be. Returns the executor."""
        try:
            self._out[executor.submit(run_jobs, group)] = (group, times)
        except (BrokenExecutor, RuntimeError):
            executor = self.make()
            self._out[executor.submit(run_jobs, group)] = (group, times)
        return executor

    def _outcome(self, future: Future[list[Done]], again: deque[tuple[Group, int]]) -> Iterator[Done]:
        """What a group gave; of a worker that ended, its jobs go out again one by one."""
        group, times = self._out.pop(future)
        try:
            yield from future.result()
        except BrokenExecutor:
            if times < AGAIN:
                again.extend(([job], times + 1) for job in group)
                return
            text = f"the process that compiled it ended {AGAIN} times, perhaps for want of memory"
            yield from (Done(number=job.number, seconds=0.0, problem=text) for job in group)


def _next(again: deque[tuple[Group, int]], waiting: Iterator[Group]) -> tuple[Group, int] | None:
    if again:
        return again.popleft()
    group = next(waiting, None)
    return None if group is None else (group, 1)


__all__ = ["TOGETHER", "Group", "Runner", "check_executor", "processes", "width_of", "workers"]
