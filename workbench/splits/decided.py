"""What decided where a found split is cut: memory, or time; and how far over its tiles stages of more even time are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.units import bytes_text, percent_text
from workbench.profiler.advice.explain import known_error
from workbench.profiler.fidelity import within_error
from workbench.profiler.profile import Profile
from workbench.splits.costs import StageCosts
from workbench.splits.layout import Layout
from workbench.splits.search import Cuts, along, best_cuts
from workbench.splits.split import Attempt

WITHIN = 1.02  # stages expected to be slower by more than the search's own error of cycles are another cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """The cuts whose slowest stage is quickest whatever it needs, and the found ones by the same costs.

    `slowest_cycles`, `found_cycles`: busy cycles of a call on the slowest IPU; `max_tile_bytes`: of the fullest tile.
    """

    cuts: Cuts
    slowest_cycles: float
    found_cycles: float
    max_tile_bytes: float

    @classmethod
    def of(cls, layout: Layout, costs: StageCosts, found: Cuts) -> Balanced:
        """By the costs of the layers as measured under the found cuts."""
        cycles, needs = layout.tables(costs)
        cuts = best_cuts(cycles, needs, np.inf)
        return cls(
            cuts=layout.whole(cuts),
            slowest_cycles=max(along(cycles, cuts)),
            found_cycles=max(along(cycles, layout.searched(found))),
            max_tile_bytes=max(along(needs, cuts)),
        )

    @property
    def is_found(self) -> bool:
        """Whether the found cuts are as even as these."""
        return self.found_cycles <= WITHIN * self.slowest_cycles


def decided(best: Attempt, attempts: Sequence[Attempt], balanced: Balanced, names: Sequence[str]) -> str:
    """What decided the cuts of the best attempt, in words; "" where neither memory nor time is known to have."""
    profile = best.profile
    if profile is None:
        return ""
    if balanced.is_found:
        return "time decided the cut: none is expected to be quicker on its slowest IPU by more than the search's 2 %"
    capacity = int(profile.target["bytes_per_tile"])
    over = _quicker(best, attempts)
    if balanced.max_tile_bytes <= capacity and over is None:
        return ""
    told = (
        f"memory decided the cut, not time: the most even in time, cut after {_after(names, balanced.cuts)}, is "
        f"expected to be {percent_text(1 - balanced.slowest_cycles / balanced.found_cycles)} quicker on its slowest "
        f"IPU, with {_against(profile, balanced.max_tile_bytes)}"
    )
    if over is None or over.profile is None:
        return told
    gain = percent_text(1 - over.profile.total_cycles / profile.total_cycles)
    return (
        f"{told}; of the quicker ones compiled, that cut after {_after(names, over.cuts)} takes {gain} fewer cycles a "
        f"call, with {_against(profile, over.profile.max_tile_bytes)}"
    )


def _quicker(best: Attempt, attempts: Sequence[Attempt]) -> Attempt | None:
    """Of those compiled with the same arguments that are quicker and do not fit, the one least over."""
    whole = best.profile.total_cycles if best.profile is not None else 0
    found = [
        each
        for each in attempts
        if each.profile is not None
        and each.arguments == best.arguments
        and not each.profile.fits
        and each.profile.total_cycles < whole
    ]
    return min(found, key=lambda each: each.rank, default=None)


def _after(names: Sequence[str], cuts: Cuts) -> str:
    return ", ".join(names[cut - 1] for cut in cuts)


def _against(profile: Profile, size_bytes: float) -> str:
    """How far over a tile so many bytes are, and whether that is less than such numbers usually are off."""
    capacity = int(profile.target["bytes_per_tile"])
    over = size_bytes - capacity
    if over <= 0:
        return f"{bytes_text(-over)} to spare"
    doubt = within_error(known_error(profile, "memory"), size_bytes, capacity)
    return f"a tile {bytes_text(over)} over{f', {doubt}' if doubt else ''}"


__all__ = ["Balanced", "decided"]
