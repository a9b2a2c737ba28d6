"""The convolution vertices' cycles for arrays of sizes, in one place for the convolution planner.

Size arguments are integers or numpy integer arrays that broadcast together; types, units, window and the channels
that name a vertex template are scalars. Each function gives exactly what its codelet gives.

Imports costs and targets. Tests: tests/engine/vertices/conv.
"""

from __future__ import annotations

from workbench.engine.vertices.conv.amp import (
    amp_1x1_cycles,
    amp_1x1_inner_cycles,
    weight_load_cycles,
    zero_partials_cycles,
)
from workbench.engine.vertices.conv.mac import dense_dot_cycles, hmac_cycles, outer_product_cycles, vmac_cycles
from workbench.engine.vertices.conv.nx1 import nx1_cycles
from workbench.engine.vertices.conv.reduce import reduce_add_cycles
from workbench.engine.vertices.conv.slic import slic_cycles, slic_inner_cycles, slic_weight_load_cycles

__all__ = [
    "amp_1x1_cycles",
    "amp_1x1_inner_cycles",
    "dense_dot_cycles",
    "hmac_cycles",
    "nx1_cycles",
    "outer_product_cycles",
    "reduce_add_cycles",
    "slic_cycles",
    "slic_inner_cycles",
    "slic_weight_load_cycles",
    "vmac_cycles",
    "weight_load_cycles",
    "zero_partials_cycles",
]
