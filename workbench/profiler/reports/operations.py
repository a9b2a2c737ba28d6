"""A row per operator, and a row per layer with everything that was done for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from workbench.base.units import cycles_text, percent_text
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records
from workbench.profiler.schema import Table
from workbench.profiler.timeline.calls import Arms
from workbench.profiler.timeline.tree import Call, ControlTree, Part, Repeat

Caller: TypeAlias = "tuple[str, bool]"
"""The layer that an outlined body is called for ("": its own), and whether the call computes something again."""
OWN: Caller = ("", False)


@report("operations")
@dataclass(frozen=True, kw_only=True, eq=False)
class Operations(Report):
    """`operators` are those that were planned; `layers` cover every step, so that their cycles sum to all of them."""

    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Operations:
        """The operations of a profile."""
        return cls(profile=profile)

    @cached_property
    def operators(self) -> pd.DataFrame:
        """The operators, the dearest first; what their plans were charged stands in `plan` too."""
        return (
            self.profile.operators.drop(columns=["body", "plan_cycles"])
            .sort_values("cycles", ascending=False, kind="stable")
            .reset_index(drop=True)
        )

    @cached_property
    def layers(self) -> pd.DataFrame:
        """`layer, cycles`, cycles by direction and by cause, `flops, bytes_received, variable_bytes, code_bytes`.

        Cycles count every execution. Steps outside any layer are in the layer "", those of a shared body in the layers
        that call it. Layers that only hold variables have no cycles. Code is that of a layer's operators: what they
        share is kept once and counts for each.
        """
        steps = self._steps_by_caller()
        found = steps.groupby("layer", sort=False).agg(cycles=("total_cycles", "sum")).astype("int64")
        for name in ("forward", "recompute", "backward", "update"):
            found[f"{name}_cycles"] = self._cycles(steps[steps["direction"] == name], found.index)
        for name in ("compute", "exchange"):
            found[f"{name}_cycles"] = self._cycles(steps[steps["cause"] == name], found.index)
        found = found.reindex(self._all_layers(found.index.tolist()), fill_value=0).rename_axis("layer")
        received = (steps["bytes_received"] * steps["times"]).groupby(steps["layer"]).sum()
        found["bytes_received"] = received.reindex(found.index, fill_value=0)
        operators = self.profile.operators
        for name in ("flops", "code_bytes"):
            found[name] = operators.groupby("layer")[name].sum().reindex(found.index, fill_value=0).astype("int64")
        variables = self.profile.variables
        held = variables.groupby("layer")["bytes"].sum()
        found["variable_bytes"] = held.reindex(found.index, fill_value=0).astype("int64")
        return found.reset_index().sort_values("cycles", ascending=False, kind="stable").reset_index(drop=True)

    def _all_layers(self, running: list[str]) -> list[str]:
        """The layers that run, then those that only hold something."""
        held = (self.profile.tables[name]["layer"] for name in ("operators", "variables"))
        return list(dict.fromkeys([*running, *(layer for layers in held for layer in layers)]))

    def _steps_by_caller(self) -> pd.DataFrame:
        """The steps, those of a shared body once for each layer that calls it and once for each direction, with that
        caller's part of their runs. What a forward body does when it runs again is recomputation."""
        steps = self.profile.steps
        function = steps["parent"].map(lambda path: path.partition("/")[0])
        callers = _callers(self.profile.control, self.profile.tables["steps"])
        shared = {name: found for name, found in callers.items() if set(found) != {OWN}}
        parts = [steps[~function.isin(list(shared))]]
        for name, found in shared.items():
            body, before = steps[function == name], 0
            for (layer, again), calls in found.items():
                part = body.assign(layer=layer or body["layer"])
                if again:
                    part["direction"] = body["direction"].replace("forward", "recompute")
                for column in ("times", "total_cycles"):
                    upto, below = (body[column] * count // found.total() for count in (before + calls, before))
                    part[column] = upto - below
                parts.append(part)
                before += calls
        return pd.concat(parts)

    def _cycles(self, steps: pd.DataFrame, layers: Any) -> Any:
        return steps.groupby("layer")["total_cycles"].sum().reindex(layers, fill_value=0).astype("int64")

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: both tables."""
        return {
            "operators": records(self.operators),
            "layers": records(self.layers),
            "step_cycles": int(np.sum(self.profile.tables["steps"]["total_cycles"])),
        }

    @property
    def sentence(self) -> str:
        """How many there are, and the dearest."""
        count = len(self.operators)
        if not count:
            return "No operators: the program was written by hand"
        first = self.operators.iloc[0]
        whole = max(1, self.data["step_cycles"])
        return (
            f"{count} operators in {len(self.layers)} layers; the dearest, {first['name']}, takes "
            f"{cycles_text(int(first['cycles']))}, {percent_text(first['cycles'] / whole)} of all steps, at "
            f"{percent_text(first['utilisation'])} of the peak rate"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The operators."""
        return self.operators.copy(deep=False)


def _callers(control: ControlTree, steps: Table) -> dict[str, Counter[Caller]]:
    """Body → how often each caller runs it in one call of the program, as the control tree says; of an `if` the arm
    that is taken."""
    callers: dict[str, Counter[Caller]] = {}
    walk = _Walk(control=control, arms=Arms(control.functions, steps))
    for (name, caller), times in walk.runs(control.entry).items():
        callers.setdefault(name, Counter())[caller] += times
    return callers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    control: ControlTree
    arms: Arms
    known: dict[str, Counter[tuple[str, Caller]]] = field(default_factory=dict)  # below bodies that were counted

    def runs(self, part: Part) -> Counter[tuple[str, Caller]]:
        """How often each body runs below a part, by name and caller."""
        found: Counter[tuple[str, Caller]] = Counter()
        if isinstance(part, Call):
            body, again = part.function, part.direction == "recompute"
            if body not in self.known:
                self.known[body] = self.runs(self.control.functions[body])
            found[body, (part.layer, again)] = 1
            for (name, (own, inner)), times in self.known[body].items():
                found[name, (own or part.layer, inner or again)] += times
        elif isinstance(part, Repeat):
            found.update({key: times * part.times for key, times in self.runs(part.body).items()})
        else:
            for child in self.arms.running(part):
                found.update(self.runs(child))
        return found
