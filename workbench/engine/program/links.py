"""IPU-Links: which IPU of the system a shard is on, the way between two IPUs, and what a ring of replicas shares.

A system is a ladder. IPUs 2k and 2k + 1 are a pair and have links of their own; links go from each IPU to the one two
above and two below it, and across the rung for what then goes on up or down. Data for the other side crosses first.
Links that carry several streams at once are shared evenly.

Source: poplibs@7eac0f26 lib/poplibs_test/Util.cpp:360-430 (bundles, widths and routing of the IPU Model).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from workbench.engine.options.enums import SelectionOrder
from workbench.engine.target import Target

Bundle: TypeAlias = tuple[Literal["pair", "cross", "up", "down"], int]
"""Links that leave one IPU in one direction."""


def width(bundle: Bundle, target: Target) -> int:
    """Links of a bundle."""
    return target.links_inside_pair if bundle[0] == "pair" else target.links_between_neighbours


@lru_cache(maxsize=4096)
def route(source: int, destination: int) -> tuple[Bundle, ...]:
    """The bundles a stream passes between two IPUs of the ladder, one per hop; none from an IPU to itself."""
    if source == destination:
        return ()
    if source // 2 == destination // 2:
        return (("pair", source),)
    passed: list[Bundle] = []
    if source % 2 != destination % 2:
        passed.append(("cross", source))
        source ^= 1
    way, step = ("up", 2) if source < destination else ("down", -2)
    passed += [(way, ipu) for ipu in range(source, destination, step)]  # type: ignore[misc]
    return tuple(passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What a stream finds: the number of hops, and of its narrowest bundle the links and the streams that share it."""

    hops: int
    links: int
    streams: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Where the shards of every replica are: replica r has the IPUs r x `block` + `order[shard]` of the ladder.

    Devices have a power of two IPUs, so a program of three shards takes three of four.
    """

    order: tuple[int, ...]
    block: int
    replicas: int = 1

    def ipu(self, shard: int, replica: int = 0) -> int:
        """The IPU of the system."""
        return replica * self.block + self.order[shard]

    def way(self, shard: int, other: int, target: Target) -> Way:
        """From one shard to another of the same replica, with nothing else on the links."""
        passed = route(self.ipu(shard), self.ipu(other))
        return Way(hops=len(passed), links=min(width(bundle, target) for bundle in passed))

    def ring(self, group_size: int, shards: int, target: Target) -> Way:
        """The worst place of the rings that join equal shards of `group_size` replicas, all at the same time.

        Replicas are visited in their order and back in one leap, or the even ones up and the odd ones down, whichever
        shares the links better.
        """
        up, down = range(0, group_size, 2), range(1, group_size, 2)
        orders = (tuple(range(group_size)), (*up, *reversed(down)))
        ways = [self._ring(order, shards, target) for order in orders]
        return min(ways, key=lambda way: (way.streams / way.links, way.hops))

    def _ring(self, visited: tuple[int, ...], shards: int, target: Target) -> Way:
        ways = list(self._edges(visited, shards))
        load = Counter(bundle for passed in ways for bundle in passed)
        worst = max(load, key=lambda bundle: load[bundle] / width(bundle, target))
        return Way(hops=max(map(len, ways)), links=width(worst, target), streams=load[worst])

    def _edges(self, visited: tuple[int, ...], shards: int) -> Iterator[tuple[Bundle, ...]]:
        for here, there in zip(visited, (*visited[1:], visited[0]), strict=True):
            for shard in range(shards):
                yield route(self.ipu(shard, here), self.ipu(shard, there))


def topology(selection: str, shards: int, replicas: int = 1, *, pipelined: bool = True) -> Topology:
    """Where a program of `shards` IPUs a replica is placed under a `SelectionOrder`.

    `AUTO` is `SNAKE` for pipelines and `ZIGZAG` for anything else (graphcore/tensorflow@b2127bba tensorflow/compiler/
    plugin/poplar/driver/poplar_compiler.cc, where the shards of one replica are ordered).
    """
    chosen = SelectionOrder[selection]
    if chosen is SelectionOrder.AUTO:
        chosen = SelectionOrder.SNAKE if pipelined else SelectionOrder.ZIGZAG
    block = 1 << (shards - 1).bit_length()
    return Topology(order=chosen.order(block)[:shards], block=block, replicas=replicas)
