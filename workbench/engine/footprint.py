"""Always-live bytes of a tile program that are not variables: code, vertex state, headers and stacks per tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.engine.program import TileProgram
from workbench.engine.tileset import IntArray

CODE_CATEGORIES = (
    "vertex_code",
    "internal_exchange_code",
    "host_exchange_code",
    "global_exchange_code",
    "control_code",
)
"""Categories that hold instructions, so they must lie in the executable region."""

CATEGORIES = (*CODE_CATEGORIES, "vertex_instance_state", "copy_descriptor", "host_exchange_packet_headers", "stack")
"""Every category of a footprint, code first."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Footprint:
    """Bytes per category: `categories[name]` is int64[ipus, tiles], one entry per name of `CATEGORIES`."""

    categories: Mapping[str, IntArray]

    def bytes_per_tile(self, ipu: int) -> IntArray:
        """All categories of one IPU together, int64[tiles]."""
        return np.asarray(sum(array[ipu] for array in self.categories.values()), dtype=np.int64)


def footprint(program: TileProgram, *, compile_ipu_code: bool = True) -> Footprint:
    """The footprint of a program; without IPU code the code categories are zero."""
    raise NotImplementedError
