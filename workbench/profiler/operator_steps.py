"""The steps of an operator: its own, and its part of those of a body that it shares with its equals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.profiler.schema import Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSteps:
    """Rows of the step table. `sharers` operators run the `shared` ones, all equally often; 0 where there are none."""

    own: tuple[int, ...]
    shared: tuple[int, ...]
    sharers: int

    def part_of(self, totals: Column) -> int:
        """The operator's part of a number that each step has over all its runs."""
        own = int(totals[list(self.own)].sum())
        return own + int(totals[list(self.shared)].sum()) // self.sharers if self.sharers else own


class StepsByOperator:
    """Rows of a step table by operator; `operators` are pairs of a name and the body it calls, `""` for none."""

    def __init__(self, operators: Iterable[tuple[str, str]], steps: Table) -> None:
        self._body = dict(operators)
        self._sharers = Counter(body for body in self._body.values() if body)
        self._own: dict[str, list[int]] = {}
        for row, name in enumerate(steps["operator"].tolist()):
            if name:
                self._own.setdefault(name, []).append(row)
        self._of_body: dict[str, list[int]] = {}
        for row, parent in enumerate(steps["parent"].tolist()):
            while parent and parent not in self._sharers:  # a loop inside a body has a name of its own
                parent = parent.rpartition("/")[0]
            if parent:
                self._of_body.setdefault(parent, []).append(row)

    def of(self, name: str) -> OperatorSteps:
        """The steps of an operator."""
        body = self._body.get(name, "")
        own, shared = self._own.get(name, ()), self._of_body.get(body, ())
        return OperatorSteps(own=tuple(own), shared=tuple(shared), sharers=self._sharers[body])
