"""Bytes of tiles at steps: what is live where and when."""

from workbench.profiler.memory.live_bytes import (
    IntArray,
    footprint,
)

__all__ = [
    "IntArray",
    "footprint",
]
