"""The rows of `.operators`, from what each operator was lowered to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from workbench.profiler.operators.callers import StepsByCaller, recomputing
from workbench.profiler.operators.rates import types_of, utilisation
from workbench.profiler.operators.reached import Reached
from workbench.profiler.operators.temporaries import Temporaries
from workbench.profiler.schema import SCHEMA, Column, Table, table, table_from_rows
from workbench.profiler.timeline.timeline import recomputed
from workbench.profiler.timeline.tree import Controlled, ControlTree


class OperatorTable(Mapping[str, Column]):
    """A row per operator of `described` (`id, layer, direction, op, plan, body`, and of one run `flops, plan_cycles`),
    and one more for each that runs again to compute something anew, worked out when the first column is asked for.
    `repeated` of an operator says how often one run of it runs a step, where that is not once.

    `code_bytes()[step]` maps the vertex classes of a step to their code. `cycles`, `flops` and `plan_cycles` count
    every run, `utilisation` is of the peak of the type it computes in, as the `target` has it, `code_bytes` the code of
    its distinct classes (which operators may share), `temporary_bytes` the most that temporaries its steps write take
    on one tile at one time.
    """

    def __init__(
        self,
        described: Sequence[Mapping[str, Any]],
        tables: Mapping[str, Table],
        temporaries: Temporaries,
        code_bytes: Callable[[], Mapping[int, Mapping[str, int]]],
        target: Mapping[str, Any],
        control: ControlTree,
    ) -> None:
        self._described, self._code_bytes, self._target = described, code_bytes, target
        self._steps, self._control, self._temporaries = tables["steps"], control, temporaries
        self._touched = {name: tables[name] for name in ("variables", "accesses")}

    def is_of(self, profile: Controlled) -> bool:
        """Whether it was made of the very steps and the control tree of a profile: another may have other lines."""
        return self._steps is profile.tables["steps"] and self._control is profile.control

    @cached_property
    def steps_by_caller(self) -> StepsByCaller:
        """The steps with all for whom they run."""
        lowered = [(operator["id"], operator["body"]) for operator in self._described]
        return StepsByCaller.of(lowered, self._steps, self._control, {recomputing(name) for name, _ in lowered})

    def __getitem__(self, name: str) -> Column:
        return self._table[name]

    def __contains__(self, name: object) -> bool:
        return name in SCHEMA["operators"]

    def __iter__(self) -> Iterator[str]:
        return iter(SCHEMA["operators"])

    def __len__(self) -> int:
        return len(SCHEMA["operators"])

    def beyond(self, name: str, bound_bytes: int) -> int:
        """The `temporary_bytes` of an operator where they are more than a bound, else 0; no table is made for it."""
        if self._reached.at_most(name) <= bound_bytes:
            return 0
        steps = self._steps_of(name)
        if self._temporaries.at_most(steps) <= bound_bytes:
            return 0
        taken = self._temporaries.most(steps)
        return taken if taken > bound_bytes else 0

    @cached_property
    def _reached(self) -> Reached:
        own = zip(self._steps["id"].tolist(), self._steps["operator"].tolist(), strict=True)
        bodies = {operator["id"]: operator["body"] for operator in self._described if operator["body"]}
        return Reached(self._control, own, bodies, self._temporaries)

    @cached_property
    def _ids(self) -> list[int]:
        found: list[int] = self._steps["id"][self.steps_by_caller.row].tolist()
        return found

    def _steps_of(self, name: str) -> list[int]:
        return [self._ids[place] for place in self.steps_by_caller.of_operator(name)]

    @cached_property
    def _table(self) -> Table:
        known, ids, code_bytes = self.steps_by_caller, self._ids, self._code_bytes()
        is_own = (self._steps["operator"][known.row] != "").tolist()
        times, cycles = known.times.tolist(), known.total_cycles.tolist()
        repeated = {step: times for operator in self._described for step, times in operator.get("repeated", {}).items()}
        found = []
        for operator in self._described:
            for name, direction in _runs_of(operator, known):
                places = known.of_operator(name)
                counted = [place for place in places if is_own[place]] or places
                runs = max((times[place] // repeated.get(ids[place], 1) for place in counted), default=0)
                flops, spent = int(operator["flops"]) * runs, sum(cycles[place] for place in places)
                mine = self._steps_of(name)
                classes: dict[str, int] = {}
                for step in mine:
                    classes |= code_bytes.get(step, {})
                found.append(
                    {
                        "name": name,
                        "layer": operator["layer"],
                        "direction": direction,
                        "op": operator["op"],
                        "flops": flops,
                        "cycles": spent,
                        "plan_cycles": int(operator["plan_cycles"]) * runs,
                        "utilisation": 0.0,
                        "code_bytes": sum(classes.values()),
                        "temporary_bytes": self._temporaries.most(mine),
                        "plan": operator["plan"],
                        "body": operator["body"],
                    }
                )
        made = table_from_rows("operators", found)
        types = types_of(made["name"].tolist(), known, self._touched, self._target)
        return table("operators", {**made, "utilisation": utilisation(made, types, self._target)})


def _runs_of(operator: Mapping[str, Any], known: StepsByCaller) -> Iterator[tuple[str, str]]:
    """The names and directions that an operator runs under."""
    yield operator["id"], operator["direction"]
    again = recomputing(operator["id"])
    if known.of_operator(again):
        yield again, recomputed(operator["direction"])
