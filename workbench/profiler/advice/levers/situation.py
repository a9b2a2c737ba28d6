"""What levers see of a program: its profile, and what of it may change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.profiler.advice.levers.change import Change

if TYPE_CHECKING:
    import pandas as pd

    from workbench.profiler.profile import Profile

GROUPS = ("matmuls", "convolutions")
_PRODUCTS = {"matmuls": ("dot", "matmul"), "convolutions": ("conv",)}
PROPORTION = "{}.poplar_options.availableMemoryProportion"
ACCUMULATORS = r"/accumulator(?:/|$)"  # in names of gradient accumulation buffers, whose kind is optimizer state's
ACCUMULATION = "gradient_accumulation_steps"
OVERLAPPED = "io_tiles.place_ops_on_io_tiles"
BESIDE = 2  # micro-batches besides a round: the one whose input comes ahead, and the one whose output goes behind
DRAWS = ("random_bits", "rng_bit_generator", "rng_uniform", "random_seed", "random_split", "threefry2x32")


def _group_of(op: str) -> str:
    """The group whose options plan an operator; "" of what is not planned."""
    return next((group for group, names in _PRODUCTS.items() if any(name in op for name in names)), "")


def accumulators_apart(variables: pd.DataFrame) -> pd.DataFrame:
    """Rows of variables, the kind of gradient accumulation buffers being `"accumulator"`."""
    buffers = variables["name"].astype(str).str.contains(ACCUMULATORS)
    return variables.assign(kind=variables["kind"].astype(str).mask(buffers, "accumulator"))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What levers see: the profile, whether something is to be freed or made faster, and fixed inputs.

    `fixed_inputs`: the arrays of the compile were given by the caller, so the batch size cannot change. `request`: what
    was asked for, None of a profile alone.
    """

    profile: Profile
    fixed_inputs: bool = False
    request: Any = None

    @property
    def mode(self) -> str:
        """`"training"`, `"inference"` or `"function"`."""
        return str(self.profile.meta["mode"])

    @property
    def batch_size(self) -> int:
        """Samples of a micro-batch."""
        return int(self.profile.meta["batch_size"] or 0)

    @property
    def accumulation(self) -> int:
        """Micro-batches of one call."""
        samples = int(self.profile.meta.get("samples_per_call") or 0)
        one = self.batch_size * int(self.profile.meta["replicas"])
        return max(1, samples // one) if one else 1

    def takes(self, micro_batches: int, *, overlapped: bool | None = None) -> bool:
        """Whether the stages' schedule takes so many micro-batches of a call; any count where nobody can tell.

        `overlapped`: with copies of the host beside compute, or without; as they are where it is None.
        """
        ask, devices = getattr(self.request, "takes", None), self.profile.tables["stages"]["ipu"].tolist()
        training = self.mode == "training"
        if not devices or not self.profile.meta["pipeline"]:
            return True
        if ask is not None:
            return bool(ask(micro_batches, devices, training=training, overlapped=overlapped))
        grouped = str(self.profile.config.get("pipeline.schedule")).endswith("Grouped")
        return not (overlapped and grouped) or micro_batches >= len(devices) * (1 + training) + BESIDE

    def takes_parts(self, parts: Sequence[Change]) -> bool:
        """Whether the schedule takes the micro-batches, with the host's copies, that changes made at once ask for."""
        options = {name: value for part in parts for name, value in part.options}
        arguments = {name: value for part in parts for name, value in part.arguments}
        if ACCUMULATION not in arguments and OVERLAPPED not in options:
            return True
        steps = int(arguments.get(ACCUMULATION, self.accumulation))
        return self.takes(steps, overlapped=options.get(OVERLAPPED))

    @cached_property
    def live(self) -> pd.DataFrame:
        """The variables live on the fullest tile at its peak, with their bytes there."""
        peak = self.profile.peak
        return accumulators_apart(self.profile.live_variables(peak.step, peak.ipu, peak.tile))

    @cached_property
    def passing(self) -> pd.DataFrame:
        """Those of them that come and go."""
        return self.live[~self.live["always_live"]]

    def live_bytes(self, *kinds: str, dtype: str = "") -> int:
        """Bytes on the fullest tile at its peak of variables of these kinds, all without; of a type, if one is named"""
        live = self.live
        chosen = live["kind"].isin(kinds) if kinds else live["bytes"] >= 0
        return int(live["bytes"][chosen & (live["dtype"] == dtype) if dtype else chosen].sum())

    def whole_bytes(self, kind: str) -> int:
        """Bytes of all variables of a kind, over all tiles."""
        variables = accumulators_apart(self.profile.variables)
        return int(variables["bytes"][variables["kind"] == kind].sum())

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of variables that there are."""
        return frozenset(str(kind) for kind in self.profile.column("variables", "kind"))

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operators of the program by name."""
        return frozenset(str(name) for name in self.profile.column("operators", "op"))

    @property
    def without_operators(self) -> bool:
        """Whether no operator was lowered: the program was made by hand, or it moves data alone."""
        return not self.operators

    @property
    def made_by_hand(self) -> bool:
        """Whether somebody wrote the tile program; of a profile of a version before, which does not say, whether no
        operator was lowered."""
        return bool(self.profile.meta.get("made_by_hand", self.without_operators))

    def has_plans(self, group: str) -> bool:
        """Whether the program has products of a group, `"matmuls"` or `"convolutions"`."""
        return any(_group_of(op) == group for op in self.operators)

    def share_of(self, op: str) -> float:
        """The largest share of a tile that the plan of an operator may take; -1.0 of one that is not planned."""
        group = _group_of(op)
        return max(self.present(PROPORTION, 0.0, (group,))) if group else -1.0

    def is_by_sample(self, shape: str) -> bool:
        """Whether the first dimension of a shape, `"(32, 10)"`, is the batch."""
        found = re.match(r"\((\d+)", shape)
        return found is not None and int(found.group(1)) == self.batch_size

    @property
    def plans(self) -> bool:
        """Whether the program has products, whose plans keep to a share of a tile's memory."""
        return any(self.has_plans(group) for group in GROUPS)

    @property
    def proportions(self) -> list[float]:
        """The shares of a tile's memory that plans keep to."""
        return self.present(PROPORTION, 0.0)

    def present(self, name: str, kind: Any, groups: Sequence[str] = GROUPS) -> list[Any]:
        """The values of an option in each group that the profile knows, in the type of `kind`."""
        found = [self.profile.config.get(name.format(group)) for group in groups]
        several = [value if isinstance(value, list | tuple) else (value,) for value in found if value is not None]
        return [type(kind)(value) for values in several for value in values] or [kind]

    @property
    def can_recompute(self) -> bool:
        """Whether activations are kept that could be computed again: stages one after the other have no need to."""
        config = self.profile.config
        sequential = self.profile.ipus > 1 and str(config.get("pipeline.schedule")).endswith("Sequential")
        return self.mode == "training" and not config.get("allow_recompute") and not sequential

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len({str(name) for name in self.profile.column("operators", "layer")} - {""})

    def has_half(self) -> bool:
        """Whether any variable is in half precision."""
        return bool((self.profile.column("variables", "dtype") == "float16").any())

    @cached_property
    def reads_batch(self) -> str:
        """A layer that reads statistics of the batch or draws over it; "" where none does."""
        for name in self.profile.column("variables", "name"):
            if found := re.match(r"(.*?)/?moving_mean", str(name)):
                return found.group(1) or "batch normalisation"
        rows = zip(self.profile.column("operators", "op"), self.profile.column("operators", "layer"), strict=True)
        return next((str(layer) for op, layer in rows if op in DRAWS and layer), "")

    def left(self, saved_bytes: float) -> int:
        """Bytes of the fullest tile after saving some of what is there."""
        return max(0, self.profile.max_tile_bytes - max(0, int(saved_bytes)))

    def slower(self, more_cycles: float) -> float:
        """Cycles of a call with so many more, as a multiple of those it takes."""
        return 1 + more_cycles / max(1, self.profile.total_cycles)
