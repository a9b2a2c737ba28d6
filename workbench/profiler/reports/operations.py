"""A row per operator, and a row per layer with everything that was done for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from workbench.base.units import cycles_text, percent_text, things_text
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records


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
        steps = self.profile.steps
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
        """How many there are, in how many layers if there are any, and the dearest."""
        count = len(self.operators)
        if not count:
            return "No operators: the program was written by hand"
        first = self.operators.iloc[0]
        whole = max(1, self.data["step_cycles"])
        layers = int((self.layers["layer"] != "").sum())
        inside = f" in {things_text(layers, 'layer')}" if layers else ""
        return (
            f"{things_text(count, 'operator')}{inside}; the dearest, {first['name']}, takes "
            f"{cycles_text(int(first['cycles']))}, {percent_text(first['cycles'] / whole)} of all steps, at "
            f"{percent_text(first['utilisation'])} of the {first['type']} peak rate"
        )

    def to_pandas(self) -> pd.DataFrame:
        """The operators."""
        return self.operators.copy(deep=False)
