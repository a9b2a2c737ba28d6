"""Passes that treat every function by itself: what they made of one is remembered for other graphs that have it too.

Graphs of one model that compute again in one way or another share the functions that nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Graph


@dataclass(slots=True)
class Remembered:
    """By pass and function what was made of it: one function, or it and new bodies that it calls.

    `earlier` is what was remembered of another graph; of that only what is met again is kept.
    """

    earlier: dict[tuple[str, Function], tuple[Function, ...]] = field(default_factory=dict)
    made: dict[tuple[str, Function], tuple[Function, ...]] = field(default_factory=dict)

    def apply(self, name: str, run: Callable[[Graph], Graph], graph: Graph) -> Graph:
        """The graph after a pass that treats every function by itself."""
        functions: dict[str, Function] = {}
        for function in graph.functions.values():
            key = (name, function)
            known = self.earlier.get(key)
            if known is None:
                alone = replace(graph, functions={function.name: function})
                known = tuple(run(alone).functions.values())
            self.made[key] = known
            functions.update((each.name, each) for each in known)
        return replace(graph, functions=functions)
