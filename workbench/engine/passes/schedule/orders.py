"""Orders of tasks by the algorithms of `scheduling.algorithm`; ties go to what stands first in the model.

Sources: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/schedulers/clustering_scheduler.cc,
shortest_path_scheduler.cc, liveness_look_ahead_scheduler.cc with schedule_tree.h. What differs: a cluster frees only
what nobody else still reads, not all that it reads.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from workbench.engine.graph import Value
from workbench.engine.passes.schedule.tasks import Tasks


def successors_of(needs: Sequence[Iterable[int]]) -> list[list[int]]:
    """Who waits for each task, in order."""
    found: list[list[int]] = [[] for _ in needs]
    for number, wanted in enumerate(needs):
        for other in sorted(wanted):
            found[other].append(number)
    return found


def shortest_path(tasks: Tasks) -> list[int]:
    """Of the tasks that can run, always the one with the fewest steps to an end of the graph."""
    after = successors_of(tasks.needs)
    distance = {number: 0 for number in range(tasks.count) if not after[number]}
    queue = deque(sorted(distance))
    while queue:
        current = queue.popleft()
        for other in sorted(tasks.needs[current]):
            if other not in distance:
                distance[other] = distance[current] + 1
                queue.append(other)
    left = [len(wanted) for wanted in tasks.needs]
    ready = [(distance[number], number) for number in range(tasks.count) if not left[number]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, current = heapq.heappop(ready)
        order.append(current)
        for other in after[current]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, (distance[other], other))
    return order


def clusters_of(tasks: Tasks, after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Chains: from a task on through the only one that waits for it, while there is just one."""
    cluster_of: dict[int, int] = {}
    found: list[list[int]] = []
    for number in range(tasks.count):
        if number in cluster_of:
            continue
        chain, current = [number], number
        cluster_of[number] = len(found)
        while len(after[current]) == 1 and after[current][0] not in cluster_of:
            current = after[current][0]
            chain.append(current)
            cluster_of[current] = len(found)
        found.append(chain)
    return found


def clustering(tasks: Tasks) -> list[int]:
    """Of the chains that can run, always the one that leaves the fewest bytes behind: bytes made less bytes freed."""
    after = successors_of(tasks.needs)
    chains = clusters_of(tasks, after)
    chain_of = {number: index for index, chain in enumerate(chains) for number in chain}
    needs: list[set[int]] = [set() for _ in chains]
    for number, wanted in enumerate(tasks.needs):
        needs[chain_of[number]] |= {chain_of[other] for other in wanted} - {chain_of[number]}
    state = _Clustering(tasks, chains, chain_of)
    left = [len(wanted) for wanted in needs]
    waiting = successors_of(needs)
    ready = [(state.added(index), index) for index in range(len(chains)) if not left[index]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        estimate, index = heapq.heappop(ready)
        if index in state.done:
            continue
        now = state.added(index)
        if now != estimate:  # others have run since and left it the last reader of something
            heapq.heappush(ready, (now, index))
            continue
        order += chains[index]
        touched = state.run(index)
        for other in waiting[index]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, (state.added(other), other))
        for other in touched:
            if not left[other] and other not in state.done:
                heapq.heappush(ready, (state.added(other), other))
    return order


@dataclass(slots=True)
class _Clustering:
    tasks: Tasks
    chains: list[list[int]]
    chain_of: dict[int, int]
    done: set[int] = field(default_factory=set)
    left: dict[Value, set[int]] = field(default_factory=dict)  # buffer → chains that still read it

    def __post_init__(self) -> None:
        for name, numbers in self.tasks.readers.items():
            self.left[name] = {self.chain_of[number] for number in numbers}

    def added(self, index: int) -> int:
        """Bytes that are there after the chain and were not before."""
        tasks = self.tasks
        made = {name for number in self.chains[index] for name in tasks.makes[number]}
        read = {name for number in self.chains[index] for name in tasks.reads[number]} - made
        kept = sum(tasks.sizes[name] for name in made if name in tasks.results or self.left.get(name, set()) - {index})
        freed = (name for name in read if name not in tasks.results and self.left[name] <= {index})
        return kept - sum(tasks.sizes[name] for name in freed)

    def run(self, index: int) -> set[int]:
        """Mark a chain as run; returns the chains that have become the only reader of something."""
        self.done.add(index)
        touched: set[int] = set()
        for name in {name for number in self.chains[index] for name in self.tasks.reads[number]}:
            self.left[name].discard(index)
            if len(self.left[name]) == 1:
                touched |= self.left[name]
        return touched


@dataclass(slots=True)
class _Ahead:
    """The search for the next task: bytes live after each of a few tasks, as far as depth and size allow."""

    tasks: Tasks
    after: list[list[int]]
    left: list[int]
    readers_left: dict[Value, int]
    live: int = 0

    def ready(self) -> list[int]:
        return [number for number, count in enumerate(self.left) if count == 0]

    def cost(self, number: int) -> int:
        """Bytes live while the task runs."""
        return self.live + sum(self.tasks.sizes[name] for name in self.tasks.makes[number])

    def step(self, number: int) -> list[int]:
        """Run a task; returns what can run now and could not before."""
        self.live = self.cost(number)
        self.left[number] = -1
        for name in self.tasks.reads[number]:
            self.readers_left[name] -= 1
            if not self.readers_left[name] and name not in self.tasks.results:
                self.live -= self.tasks.sizes[name]
        for name in self.tasks.makes[number]:
            if not self.readers_left.get(name) and name not in self.tasks.results:
                self.live -= self.tasks.sizes[name]
        woken = []
        for other in self.after[number]:
            self.left[other] -= 1
            if not self.left[other]:
                woken.append(other)
        return woken

    def back(self, number: int, live: int) -> None:
        """Undo the last `step`, before which `live` bytes were live."""
        for other in self.after[number]:
            self.left[other] += 1
        for name in self.tasks.reads[number]:
            self.readers_left[name] += 1
        self.left[number], self.live = 0, live


def look_ahead(tasks: Tasks, depth: int, width: int) -> list[int]:
    """Always the task from which the lowest peak can be reached within `depth` tasks, at most `width` orders tried."""
    readers_left = {name: len(numbers) for name, numbers in tasks.readers.items()}
    state = _Ahead(tasks, successors_of(tasks.needs), [len(wanted) for wanted in tasks.needs], readers_left)
    ready = state.ready()
    order: list[int] = []
    while ready:
        # As many candidates as may be tried, those that leave least first: the tree is cut, not thinned.
        tried = ready[:width]
        best = min((_reach(state, ready, number, depth, width // len(tried)), number) for number in tried)[1]
        order.append(best)
        ready.remove(best)
        ready = sorted(ready + state.step(best))
    return order


def _reach(state: _Ahead, ready: list[int], number: int, depth: int, width: int) -> tuple[int, int]:
    """(the lowest peak, the bytes live at its end) of orders that begin with a task."""
    before, cost = state.live, state.cost(number)
    woken = state.step(number)
    best = (cost, state.live)
    further = [other for other in ready if other != number] + woken
    if depth > 1 and width > 1 and further:
        tried = further[: width - 1]
        share = (width - 1) // len(tried)
        reached = min(_reach(state, further, other, depth - 1, share) for other in tried)
        best = (max(cost, reached[0]), reached[1])
    state.back(number, before)
    return best
