"""Bytes of tiles at steps: what is live where and when.

`live_bytes` at steps, `addresses` on a tile. Imports what a profile stores. Tests: tests/profiler/memory.
"""

from workbench.profiler.memory.live_bytes import footprint

__all__ = ["footprint"]
