"""Samples of the operators of `ops/free.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import I32, MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "constants": sample("constant", [], [((), F32)], value=1.0),
    "broadcast": sample("broadcast_in_dim", [((10,), F32)], [MATRIX], broadcast_dimensions=(1,), shape=(12, 10)),
    "iota": sample("iota", [], [((30,), I32)], dimension=0, shape=(30,), dtype=I32),
}
