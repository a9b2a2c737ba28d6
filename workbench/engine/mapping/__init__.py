"""Mappings: which tile of one IPU holds each element of a tensor, what tiles need, and what moving it costs.

A mapping is over the row-major flat index space of its shape. `Linear`, `Grid` and `Runs` give every element one
owner; a `Grid` may also be a demand (overlapping cuts, replicas), and `Demand` is any demand. All are immutable and
interned: compare them with `==`, use them as keys.

`types` and `grid` are what there is, `axes`, `turned`, `views` and `joined` the same elements seen otherwise, `padded`
more of them, `needs` what a broadcast asks of an operand, `transfer/` what an exchange moves, by the fastest of seven
exact methods.
May import base, the cost, target and options. Tests: tests/engine/mapping/, against a walk over single elements.
"""

from __future__ import annotations

from workbench.engine.mapping.grid import Cuts, Grid, even_cuts, grid, grid_of_cuts, linear, on_tile, replicate, whole
from workbench.engine.mapping.joined import concatenate
from workbench.engine.mapping.needs import needed_by
from workbench.engine.mapping.padded import Padding, pad, pad_beside, padding
from workbench.engine.mapping.transfer import Transfer, transfer
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import (
    Demand,
    Linear,
    Mapping,
    Placement,
    Runs,
    by_hand,
    demand,
    intern,
    runs,
    runs_of_elements,
)
from workbench.engine.mapping.views import reshape, reverse, rows_of, slice_, transpose

__all__ = [
    "Cuts",
    "Demand",
    "Grid",
    "Linear",
    "Mapping",
    "Padding",
    "Placement",
    "Runs",
    "Transfer",
    "Turned",
    "by_hand",
    "concatenate",
    "demand",
    "even_cuts",
    "grid",
    "grid_of_cuts",
    "intern",
    "linear",
    "needed_by",
    "on_tile",
    "pad",
    "pad_beside",
    "padding",
    "replicate",
    "reshape",
    "reverse",
    "rows_of",
    "runs",
    "runs_of_elements",
    "slice_",
    "transfer",
    "transpose",
    "whole",
]
