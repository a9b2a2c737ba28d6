"""A row per operator, and a row per layer with everything that was done for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.base.units import cycles_text, percent_text, things_text
from workbench.profiler.fidelity import as_much
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records

FEW = 3  # parts of a program that are no layers, which a sentence names


@report("operations")
@dataclass(frozen=True, kw_only=True, eq=False)
class Operations(Report):
    """`operators` are those that were planned; `layers` cover every step, so that their cycles sum to all of them."""

    kinds: ClassVar[tuple[str, ...]] = ("product", "compute", "exchange")
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
            return "No operators: the program was written by hand, or moves data alone"
        first = self.operators.iloc[0]
        whole = max(1, self.data["step_cycles"])
        rate = f"at {percent_text(first['utilisation'])} of the {first['type']} peak rate"
        on = f" on {things_text(self.profile.ipus, 'IPU')}" if self.profile.ipus > 1 else ""
        works = first["flops"] > 0 and first["type"]
        return (
            f"{things_text(count, 'operator')}{self._inside}; the dearest, {first['name']}{self._as_dear}, takes "
            f"{cycles_text(int(first['cycles']))} (modelled), {percent_text(first['cycles'] / whole)} of those of all "
            f"steps{on}, "
            f"{rate if works else 'without floating-point work'}"
        )

    @property
    def _as_dear(self) -> str:
        """How many others take as long, or less by no more than such numbers usually are off."""
        others = len(as_much(self.known_error("compute"), self.operators["cycles"].tolist())) - 1
        return f" ({others:,} more within the typical error)" if others else ""

    @property
    def _inside(self) -> str:
        """`" in 2 layers, loss and optimizer"`: what has no class, and is in nothing that has one, is no layer of the
        model, unless nothing has one."""
        steps = self.profile.steps
        classed = set(steps["layer"][steps["layer_class"] != ""])
        names = [name for name in self.layers["layer"] if name]
        running = set(self.layers["layer"][self.layers["cycles"] > 0])
        around = {name: {name[:end] for end, letter in enumerate(name) if letter == "/"} | {name} for name in names}
        others = [name for name in names if classed and name in running and not around[name] & classed]
        told = [things_text(len(names) - len(others), "layer")] if len(names) > len(others) else []
        told += sorted(others) if len(others) <= FEW else [f"{things_text(len(others), 'part')} outside of layers"]
        return f" in {' and '.join([', '.join(told[:-1]), told[-1]] if len(told) > 1 else told)}" if told else ""

    @property
    def explained_by(self) -> str:
        """The dearest operator."""
        return f"operator={self.operators['name'].iloc[0]!r}" if len(self.operators) else ""

    def to_pandas(self) -> pd.DataFrame:
        """The operators."""
        return self.operators.copy(deep=False)
