"""Schedule: the order of a function's nodes, by the algorithm that `scheduling.algorithm` names.

POST_ORDER is the order of the model, in which every value stands behind what it is made of; updates run as soon as they
can, so that gradients die young. The others are in orders.py. CHOOSE_BEST takes the order with the lowest
peak by the schedulers' estimate, POST_ORDER if none is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush

from workbench.engine import ops
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.options import Options
from workbench.engine.passes.schedule.orders import clustering, look_ahead, shortest_path
from workbench.engine.passes.schedule.tasks import Tasks, peak_of, tasks_of


def schedule(graph: Graph, options: Options | None = None) -> Graph:
    """Reorder the entry (inline bodies keep their order)."""
    chosen = options or Options()
    function = _readers_first(graph, graph.body)
    waiting = _waits(graph, function)
    made_by = {value: number for number, node in enumerate(function.nodes) for value in node.results}
    needs = [_needs(node, number, made_by, waiting) for number, node in enumerate(function.nodes)]
    order = _ordered(graph, function, needs, chosen)
    functions = dict(graph.functions)
    functions[graph.entry] = replace(function, nodes=tuple(function.nodes[number] for number in order))
    return replace(graph, functions=functions)


def _ordered(graph: Graph, function: Function, needs: list[set[int]], options: Options) -> list[int]:
    algorithm = str(options.get("scheduling.algorithm"))
    model = _early_updates(function, needs)
    over_ipus = len({node.origin.shard for node in function.nodes}) > 1  # an order of IPUs, not of memory
    if algorithm == "POST_ORDER" or over_ipus or len(model) < 2:
        return model
    tasks = tasks_of(graph, function, _late_recomputations(function, needs))
    if algorithm != "CHOOSE_BEST":
        return _order_of(algorithm, options)(tasks)
    tried = [model, clustering(tasks), shortest_path(tasks)]
    return min(tried, key=lambda order: peak_of(tasks, order))


def _order_of(algorithm: str, options: Options) -> Callable[[Tasks], list[int]]:
    if algorithm == "CLUSTERING":
        return clustering
    if algorithm == "SHORTEST_PATH":
        return shortest_path
    depth = options.get("scheduling.maximum_scheduler_lookahead_depth")
    width = options.get("scheduling.maximum_scheduler_search_space_size")
    return lambda tasks: look_ahead(tasks, depth, width)


def _late_recomputations(function: Function, needs: list[set[int]]) -> list[set[int]]:
    """What is made again going backward waits for the gradient before it: early, it would be the stash it saves."""
    found = [set(wanted) for wanted in needs]
    last = None
    for number, node in enumerate(function.nodes):
        if node.origin.direction == "backward":
            last = number
        elif node.origin.direction == "recompute" and last is not None:
            found[number].add(last)
    return found


def _early_updates(function: Function, needs: list[set[int]]) -> list[int]:
    """Keep the order of the model, but run an update once its operands are there and its parameter is read no more.

    What updates share and what waits for no gradient (a step's corrected rate, a slot's decay) runs when first read:
    in its place it would keep every gradient waiting, at the start it would live through the whole model.
    """
    order = _Order(function, needs)
    for number in range(len(function.nodes)):
        order.run(number)
    return order.order


class _Order:
    """The nodes run so far; `left` counts what each still waits for, besides what is run when it is read."""

    def __init__(self, function: Function, needs: list[set[int]]) -> None:
        self.function, self.needs = function, needs
        self.free = _free_of_gradients(function, needs)
        self.readers: dict[int, list[int]] = {}
        for number, wanted in enumerate(needs):
            for other in wanted - self.free:
                self.readers.setdefault(other, []).append(number)
        self.left = [len(wanted - self.free) for wanted in needs]
        self.done: set[int] = set()
        self.order: list[int] = []

    def run(self, number: int) -> None:
        """A node, if it has not run, and every update that then can."""
        pending = [] if number in self.done else [number]
        while pending:
            current = pending.pop()
            self._append(current)
            for reader in self.readers.get(current, ()):
                self.left[reader] -= 1
                if self.left[reader] == 0 and self._is_waiting_update(reader):
                    pending.append(reader)

    def _is_waiting_update(self, number: int) -> bool:
        return number not in self.done and self.function.nodes[number].origin.direction == "update"

    def _append(self, number: int) -> None:
        for needed in sorted((self.needs[number] & self.free) - self.done):
            if needed not in self.done:
                self._append(needed)
        self.done.add(number)
        self.order.append(number)


def _free_of_gradients(function: Function, needs: list[set[int]]) -> set[int]:
    """Updates made of parameters and of each other alone."""
    free: set[int] = set()
    for number, node in enumerate(function.nodes):
        if node.origin.direction == "update" and needs[number] <= free:
            free.add(number)
    return free


def _needs(node: Node, number: int, made_by: dict[Value, int], waiting: dict[int, set[int]]) -> set[int]:
    found = {made_by[value] for value in node.operands if value in made_by}
    return (found | waiting.get(number, set())) - {number}


def _waits(graph: Graph, function: Function) -> dict[int, set[int]]:
    """Node → the earlier readers of the parameters it overwrites, which must run first."""
    others = _other_readers(graph, function)
    return {writer: {number for number in readers if number < writer} for writer, readers in others.items()}


def _readers_first(graph: Graph, function: Function) -> Function:
    """The function with what overwrites a parameter behind all its readers, but for those that need the new value."""
    later = {
        writer: late
        for writer, readers in _other_readers(graph, function).items()
        if (late := {number for number in readers if number > writer})
    }
    if not later:
        return function
    made_by = {value: number for number, node in enumerate(function.nodes) for value in node.results}
    needs = [_needs(node, number, made_by, {}) for number, node in enumerate(function.nodes)]
    for writer, readers in later.items():
        needs[writer] |= {number for number in sorted(readers) if not _leads_to(writer, number, needs)}
    order = TopologicalSorter(dict(enumerate(needs)))
    order.prepare()
    ready, found = list(order.get_ready()), []
    heapify(ready)
    while ready:
        found.append(heappop(ready))
        order.done(found[-1])
        for number in order.get_ready():
            heappush(ready, number)
    return replace(function, nodes=tuple(function.nodes[number] for number in found))


def _leads_to(first: int, last: int, needs: list[set[int]]) -> bool:
    """Whether `last` needs `first`, by way of others too."""
    seen, open_ = {last}, [last]
    while open_:
        for number in needs[open_.pop()] - seen:
            seen.add(number)
            open_.append(number)
    return first in seen


def _other_readers(graph: Graph, function: Function) -> dict[int, set[int]]:
    """Node → the other readers of the parameters it overwrites, themselves or through views."""
    producer = {value: number for number, node in enumerate(function.nodes) for value in node.results}
    readers: dict[Value, set[int]] = {}
    seen: dict[Value, set[Value]] = {}  # view → the values it shows
    for number, node in enumerate(function.nodes):
        shown = set().union(*(seen.get(value, {value}) for value in node.operands))
        for source in shown:
            readers.setdefault(source, set()).add(number)
        if ops.family_of(node).pure_view:
            seen.update((value, shown) for value in node.results)
    found: dict[int, set[int]] = {}
    for output, value in zip(graph.outputs, function.results, strict=True):
        if output.updates is None or value not in producer:
            continue
        writer = producer[value]
        others = readers.get(function.params[output.updates], set()) - {writer}
        found.setdefault(writer, set()).update(others)
    return found
