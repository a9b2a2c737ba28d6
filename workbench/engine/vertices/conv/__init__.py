"""The convolution vertices' cycles for arrays of sizes, in one place for the convolution planner."""

from workbench.engine.vertices.conv.conv import (
    amp_1x1_cycles,
    hmac_cycles,
    nx1_cycles,
    outer_product_cycles,
    reduce_add_cycles,
    vmac_cycles,
)

__all__ = [
    "amp_1x1_cycles",
    "hmac_cycles",
    "nx1_cycles",
    "outer_product_cycles",
    "reduce_add_cycles",
    "vmac_cycles",
]
