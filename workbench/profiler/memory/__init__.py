"""Bytes of tiles at steps: what is live where and when."""

from workbench.profiler.memory.live_bytes import footprint

__all__ = ["footprint"]
