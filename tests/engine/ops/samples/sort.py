"""Samples of the operators of `ops/sort.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import I32, MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "sort": sample("sort", [MATRIX, ((12, 10), I32)], [MATRIX, ((12, 10), I32)], dimension=1, num_keys=1),
    "top_k": sample("top_k", [MATRIX], [((12, 3), F32), ((12, 3), I32)], k=3),
}
