"""Samples of the operators of `ops/scatter.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.sampled import INDICES, TABLE, TAKEN, Sample, sample

UPDATES: dict[str, Any] = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "operand_batching_dims": (),
    "scatter_indices_batching_dims": (),
}

SAMPLES: dict[str, Sample] = {
    "scatter": sample("scatter-add", [TABLE, INDICES, TAKEN], [TABLE], **UPDATES),
}
