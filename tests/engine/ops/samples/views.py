"""Samples of the operators of `ops/views.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "views": sample("transpose", [MATRIX], [((10, 12), F32)], permutation=(1, 0)),
    "joins": sample("concatenate", [MATRIX, MATRIX], [((24, 10), F32)], dimension=0),
    "pad": sample("pad", [MATRIX, ((), F32)], [((15, 10), F32)], low=(1, 0), high=(2, 0), interior=(0, 0)),
}
