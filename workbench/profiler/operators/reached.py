"""A bound of what the temporaries of an operator take, without asking for whom each step runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.profiler.operators.temporaries import Temporaries
from workbench.profiler.timeline.tree import Call, ControlTree, Part, Step, children


class Reached:
    """What an operator may write: in the steps that name it (`own`: step and operator), in the body it was lowered to,
    by operator in `bodies`, and in those that are called for it; with all that these call."""

    def __init__(
        self,
        control: ControlTree,
        own: Iterable[tuple[int, str]],
        bodies: Mapping[str, str],
        temporaries: Temporaries,
    ) -> None:
        self._temporaries = temporaries
        self._own: dict[str, list[int]] = {}
        for step, operator in own:
            self._own.setdefault(operator, []).append(step)
        self._steps: dict[str, list[int]] = {}
        self._calls: dict[str, set[str]] = {}
        self._bodies: dict[str, set[str]] = {}
        for name, body in control.bodies.items():
            self._steps[name], calls = _leaves(body)
            self._calls[name] = {call.function for call in calls}
            for call in calls:
                if call.operator:
                    self._bodies.setdefault(call.operator, set()).add(call.function)
        for operator, path in bodies.items():
            self._bodies.setdefault(operator, set()).add(path.partition("/")[0])
        self._known: dict[str, int] = {}

    def at_most(self, operator: str) -> int:
        """Bytes on one tile, as if all lay on one at one time; at least what the operator's steps take."""
        own = self._temporaries.at_most(self._own.get(operator, ()))
        return own + sum([self._of_body(name) for name in self._bodies.get(operator, ())])

    def _of_body(self, name: str) -> int:
        if name not in self._known:
            own = self._temporaries.at_most(self._steps.get(name, ()))
            self._known[name] = own + sum([self._of_body(each) for each in self._calls.get(name, ())])
        return self._known[name]


def _leaves(body: Part) -> tuple[list[int], list[Call]]:
    """The steps of a body, by id, and its calls, in no order."""
    steps: list[int] = []
    calls: list[Call] = []
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Step):
            steps.append(node.id)
        elif isinstance(node, Call):
            calls.append(node)
        else:
            waiting += children(node)
    return steps, calls
