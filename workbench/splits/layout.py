"""Where cuts may be, and which stage lies on which IPU: layers that share a variable have to be on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import FloatArray
from workbench.engine.frontends.staging.chain import LayerChain
from workbench.engine.frontends.staging.stages import evenly
from workbench.splits.costs import StageCosts
from workbench.splits.search import Cuts, best_cuts, near

Tables = list[FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Stages of a chain of so many layers over so many IPUs.

    Layers close to one another that share a variable are not parted: no cut is in `glued`. Where those that share one
    are further apart (a table that embeds and scores), the layers from `tail` on are one more stage, on the first IPU,
    whose first stage reaches beyond layer `head`. Without such layers `tail` is the number of layers.
    """

    layers: int
    ipus: int
    tail: int
    head: int = -1
    glued: frozenset[int] = frozenset()

    @classmethod
    def of(cls, chain: LayerChain, ipus: int, *, mapped: bool = False) -> Layout:
        """The layout that a chain's shared variables ask for; `mapped`: the IPU of each stage is given already."""
        count = len(chain.names)
        if ipus >= 2 and not mapped and (found := cls._together(chain, ipus))._takes_cuts:
            return found
        return cls(layers=count, ipus=ipus, tail=count)

    @classmethod
    def most(cls, chain: LayerChain, ipus: int) -> int:
        """The most IPUs, of up to so many, over which cuts leave each shared variable on one."""
        return next((each for each in range(ipus, 1, -1) if cls._together(chain, each)._takes_cuts), 1)

    @classmethod
    def _together(cls, chain: LayerChain, ipus: int) -> Layout:
        """The layout with layers that share a variable on one IPU, whether or not there are places enough to cut."""
        count = len(chain.names)
        far = [pair for pair in chain.shared if pair[1] - pair[0] >= count // ipus]
        glued = {cut for pair in chain.shared if pair not in far for cut in range(pair[0] + 1, pair[1] + 1)}
        tail, head = min((last for _, last in far), default=count), max((first for first, _ in far), default=-1)
        while tail in glued:
            tail -= 1
        return cls(layers=count, ipus=ipus, tail=tail, head=head, glued=frozenset(glued))

    @property
    def _takes_cuts(self) -> bool:
        """Whether there are places enough to cut."""
        return len(self._allowed) >= self.ipus - 1

    @property
    def _allowed(self) -> list[int]:
        return [cut for cut in range(max(1, self.head + 1), self.tail) if cut not in self.glued]

    @property
    def devices(self) -> tuple[int, ...]:
        """The IPU of each stage; () is one each, in order."""
        return (*range(self.ipus), 0) if self.tail < self.layers else ()

    @property
    def stages(self) -> int:
        """How many there are."""
        return self.ipus + (self.tail < self.layers)

    def whole(self, cuts: Cuts) -> Cuts:
        """All cuts, that in front of the tail too."""
        return (*cuts, self.tail) if self.tail < self.layers else cuts

    def searched(self, cuts: Cuts) -> Cuts:
        """Those of all cuts that are searched."""
        return cuts[: self.ipus - 1]

    def even(self) -> Cuts:
        """As many layers on each stage, as far as cuts may be there."""
        stages = evenly(self.tail, self.ipus)
        cuts = tuple(place for place in range(1, len(stages)) if stages[place] != stages[place - 1])
        if {*cuts} <= {*self._allowed}:
            return cuts
        layers = np.arange(self.tail + 1)[None, :] - np.arange(self.tail)[:, None]
        tables = self._masked([np.where(layers > 0, layers, np.inf).astype(float)] * self.ipus)
        return best_cuts(tables, tables, np.inf)

    def tables(self, costs: StageCosts) -> tuple[Tables, Tables]:
        """Cycles and bytes of each IPU with the layers first to end - 1, as `best_cuts` takes them; the first has the
        tail besides."""
        cycles = [costs.stage_cycles()] * self.ipus
        needs = [costs.stage_bytes(stage) for stage in range(self.ipus)]
        if self.tail < self.layers:
            cycles[0] = cycles[0] + cycles[0][self.tail, self.layers]
            needs[0] = needs[0] + costs.stage_bytes(self.ipus)[self.tail, self.layers]
        return self._masked(cycles), self._masked(needs)

    def _masked(self, tables: Sequence[FloatArray]) -> Tables:
        """Of the layers before the tail; infinite where a cut may not be."""
        kept = [table[: self.tail, : self.tail + 1].copy() for table in tables]
        forbidden = [cut for cut in range(1, self.tail) if cut not in self._allowed]
        for table in kept:
            table[forbidden, :] = np.inf
            table[:, forbidden] = np.inf
        return kept

    def near(self, cuts: Cuts) -> list[Cuts]:
        """Cuts that differ in one place by one layer."""
        allowed = {*self._allowed}
        return [each for each in near(cuts, self.tail) if {*each} <= allowed]

    def by_stage(self, values: Sequence[float]) -> tuple[float, ...]:
        """What is known of each IPU, for each stage."""
        return (*values, values[0]) if self.tail < self.layers else tuple(values)


__all__ = ["Layout"]
