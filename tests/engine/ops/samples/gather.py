"""Samples of the operators of `ops/gather.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import INDICES, TABLE, TAKEN, Sample, sample

ROWS: dict[str, Any] = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "slice_sizes": (1, 6),
    "operand_batching_dims": (),
    "start_indices_batching_dims": (),
}

SAMPLES: dict[str, Sample] = {
    "gather": sample("gather", [TABLE, INDICES], [TAKEN], **ROWS),
    "known_rows": sample("known_rows", [TABLE], [((7, 6), F32)], firsts=(3, 11), counts=(4, 3), repeats=False),
    "repeated_rows": sample("known_rows", [TABLE], [((7, 6), F32)], firsts=(3, 5), counts=(4, 3), repeats=True),
}
