"""The rows of `.operators`, from what each operator was lowered to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.arrays import IntArray
from workbench.profiler.operators.steps import StepsByOperator
from workbench.profiler.schema import Table, table_from_rows
from workbench.profiler.timeline.tree import ControlTree


def operator_rows(
    described: Sequence[Mapping[str, Any]],
    tables: Mapping[str, Table],
    per_tile: IntArray,
    code_bytes: Mapping[int, Mapping[str, int]],
    peak_flops_per_cycle: float,
    control: ControlTree,
) -> Table:
    """A row per operator of `described` (`id, layer, direction, op, plan, body`, and of one run `flops, plan_cycles`).
    Its `repeated` says how often one run of the operator runs a step, where that is not once.

    `code_bytes[step]` maps the vertex classes of a step to their code. `cycles`, `flops` and `plan_cycles` count every
    run, `utilisation` is flops / (cycles x peak), `code_bytes` the code of its distinct classes (which operators may
    share), `temporary_bytes` the most that temporaries its steps write take on one tile at one time.
    """
    steps = tables["steps"]
    known = StepsByOperator([(operator["id"], operator["body"]) for operator in described], steps, control)
    repeated = {step: times for operator in described for step, times in operator.get("repeated", {}).items()}
    temporaries = _Temporaries(tables, per_tile)
    found = []
    for operator in described:
        lowered = known.of(operator["id"])
        ids = steps["id"][[*lowered.own, *lowered.shared]].tolist()
        cycles = lowered.part_of(steps["total_cycles"])
        counted = lowered.own or lowered.shared
        runs = max((int(steps["times"][row]) // repeated.get(int(steps["id"][row]), 1) for row in counted), default=0)
        runs = runs if lowered.own else lowered.shared_part(runs)
        flops = int(operator["flops"]) * runs
        classes: dict[str, int] = {}
        for step in ids:
            classes |= code_bytes.get(step, {})
        found.append(
            {
                "name": operator["id"],
                "layer": operator["layer"],
                "direction": operator["direction"],
                "op": operator["op"],
                "flops": flops,
                "cycles": cycles,
                "plan_cycles": int(operator["plan_cycles"]) * runs,
                "utilisation": flops / (cycles * peak_flops_per_cycle) if cycles else 0.0,
                "code_bytes": sum(classes.values()),
                "temporary_bytes": temporaries.most(ids),
                "plan": operator["plan"],
                "body": operator["body"],
            }
        )
    return table_from_rows("operators", found)


class _Temporaries:
    """Temporaries by the step that writes them, with their lives and bytes per tile."""

    def __init__(self, tables: Mapping[str, Table], per_tile: IntArray) -> None:
        variables, accesses, intervals = tables["variables"], tables["accesses"], tables["intervals"]
        self.per_tile, self.index = per_tile, variables["bytes_index"]
        temporary = variables["kind"] == "temporary"
        self.known: dict[frozenset[int], int] = {}
        self.written: dict[int, list[int]] = {}
        chosen = accesses["write"] & temporary[accesses["variable"]]
        for step, variable in zip(
            accesses["step"][chosen].tolist(), accesses["variable"][chosen].tolist(), strict=True
        ):
            self.written.setdefault(step, []).append(variable)
        self.lives: dict[int, list[tuple[int, int]]] = {}
        columns = (intervals[name].tolist() for name in ("variable", "first", "last"))
        for variable, first, last in zip(*columns, strict=True):
            if temporary[variable]:
                self.lives.setdefault(variable, []).append((first, last))

    def most(self, steps: Sequence[int]) -> int:
        """The most bytes on one tile that the temporaries written by these steps take at one time."""
        own = frozenset(variable for step in steps for variable in self.written.get(step, ()))
        if own not in self.known:  # operators that share a body ask for the same
            self.known[own] = self._most(own)
        return self.known[own]

    def _most(self, own: frozenset[int]) -> int:
        variables = sorted(own)
        begins: dict[int, int] = {}  # sets of variables as whole numbers, a bit for each
        ends: dict[int, int] = {}
        for place, variable in enumerate(variables):
            for first, last in self.lives.get(variable, ()):  # disjoint, so a variable is live once at most
                begins[first] = begins.get(first, 0) | 1 << place
                ends[last + 1] = ends.get(last + 1, 0) | 1 << place
        live = 0
        seen: dict[int, None] = {}  # a body that is called often has the same temporaries each time
        for moment in sorted({*begins, *ends}):
            live = live & ~ends.get(moment, 0) | begins.get(moment, 0)
            if moment in begins:
                seen[live] = None
        rows = [self.index[variable] for variable in variables]
        sums = (
            self.per_tile[[row for place, row in enumerate(rows) if each >> place & 1]].sum(axis=0) for each in seen
        )
        return max((int(total.max()) for total in sums), default=0)
