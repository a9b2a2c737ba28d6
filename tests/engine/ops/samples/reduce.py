"""Samples of the operators of `ops/reduce.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "reduce": sample("reduce_sum", [MATRIX], [((10,), F32)], axes=(0,)),
}
