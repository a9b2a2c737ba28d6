"""Samples of the operators of `ops/elementwise.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "elementwise": sample("add", [MATRIX, ((1, 10), F32)], [MATRIX]),
}
