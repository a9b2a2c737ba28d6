"""A checker of placements that knows nothing of the allocator."""

from __future__ import annotations

from itertools import combinations

from workbench.base.categories import CODE_CATEGORIES
from workbench.engine.memory.allocation import TileAllocation
from workbench.engine.target import Target


def check(tile: TileAllocation, target: Target) -> None:
    """The independent checker: pairwise, byte by byte in space and step by step in time."""
    border, end = target.memory.non_interleaved_bytes, target.bytes_per_tile
    for block in tile.blocks:
        stop = block.address + block.size_bytes
        if block.region == "overflow":
            assert stop > end
            continue
        assert 0 <= block.address <= stop <= end
        assert (block.region == "non_interleaved") is (block.address < border)
        if block.category in CODE_CATEGORIES:
            assert stop <= target.memory.executable_bytes
        if block.region != "overflow" and block.category in CODE_CATEGORIES:
            assert block.address + block.size_bytes <= target.memory.executable_bytes
    for one, other in combinations(tile.blocks, 2):
        together = one.always_live or other.always_live
        for first, last in one.intervals:
            together |= any(a <= last and first <= b for a, b in other.intervals)
        apart = one.address + one.size_bytes <= other.address or other.address + other.size_bytes <= one.address
        assert apart or not together, f"{one.label} and {other.label} overlap in space and time"
