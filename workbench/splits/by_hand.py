"""Cuts that are moved by hand: what each stage would cost by the layer costs of a split that was compiled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError
from workbench.executable.sources import TRACING
from workbench.profiler.profile import Profile
from workbench.splits.costs import StageCosts, costs_of
from workbench.splits.search import Cuts, along
from workbench.splits.split import busy_cycles, stage_bytes, stages_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByHand:
    """A split that was compiled: `names` of the layers, `cuts` (the first layer of each stage but the first), what the
    layers cost there, the busy cycles and the bytes of the fullest tile of each stage as compiled."""

    names: tuple[str, ...]
    cuts: Cuts
    costs: StageCosts
    capacity_bytes: int
    cycles: tuple[int, ...]
    bytes: tuple[int, ...]

    @classmethod
    def of(cls, executable: Any) -> ByHand | None:
        """Of an executable whose stages are layers in order, each on an IPU of its own; None of any other."""
        from workbench.engine.frontends.staging.chain import chain_of

        profile, request = executable.profile, executable.request
        own = len(profile.stages) == profile.stages["ipu"].nunique() >= 2
        if not own or request.stages is None or request.inputs:
            return None
        with TRACING:
            chain = chain_of(request.source)
        stages = _stages(request.stages, chain.names)
        if stages is None or max(stages) + 1 != len(profile.stages):
            return None
        batch = int(request.batch_size or profile.meta.get("batch_size") or 1)
        return cls._measured(profile, chain.names, stages, [batch * each for each in chain.crossing_bytes])

    @classmethod
    def _measured(cls, profile: Profile, names: tuple[str, ...], stages: list[int], crossing: list[int]) -> ByHand:
        return cls(
            names=names,
            cuts=tuple(place for place in range(1, len(stages)) if stages[place] != stages[place - 1]),
            costs=costs_of(profile, names, stages, crossing),
            capacity_bytes=int(profile.target["bytes_per_tile"]),
            cycles=tuple(busy_cycles(profile)),
            bytes=tuple(stage_bytes(profile)),
        )

    def expected(self, cuts: Sequence[int]) -> tuple[list[float], list[float]]:
        """Busy cycles of a call and bytes of the fullest tile of each stage under these cuts, from the layer costs."""
        cuts = self.checked(cuts)
        stages = len(cuts) + 1
        cycles = [self.costs.stage_cycles()] * stages
        return along(cycles, cuts), along([self.costs.stage_bytes(stage) for stage in range(stages)], cuts)

    def checked(self, cuts: Any) -> Cuts:
        """The cuts, if every stage has a layer; else an `InputError`."""
        count, wanted = len(self.names), len(self.cuts)
        known = isinstance(cuts, Sequence) and all(type(cut) is int for cut in cuts)
        if not known or len(cuts) != wanted or sorted({*cuts, 0, count}) != [0, *cuts, count]:
            raise InputError(
                f"the cuts are {cuts!r}", expected=f"{wanted} rising numbers between 1 and {count - 1}: first layers"
            )
        return tuple(cuts)

    def stages(self, cuts: Sequence[int]) -> list[str]:
        """The layers to cut after, as `wb.compile(stages=...)` takes them."""
        return [self.names[cut - 1] for cut in self.checked(cuts)]


def _stages(given: Any, names: tuple[str, ...]) -> list[int] | None:
    """A stage per layer, whichever way they were given; None where the layers are not in order."""
    stages = list(getattr(given, "stages", given))
    if stages and all(isinstance(each, str) for each in stages):
        if not {*stages} <= {*names}:
            return None
        stages = stages_of(tuple(names.index(each) + 1 for each in stages), len(names))
    in_order = len(stages) == len(names) and all(0 <= b - a <= 1 for a, b in itertools.pairwise(stages))
    return stages if in_order and stages[0] == 0 else None
