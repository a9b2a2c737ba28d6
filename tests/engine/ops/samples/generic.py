"""Samples of the operators of `ops/generic.py`."""

from __future__ import annotations

from tests.engine.ops.sampled import MATRIX, VECTOR, Sample, sample

SAMPLES: dict[str, Sample] = {
    "generic": sample("an_unknown_primitive", [MATRIX, VECTOR], [MATRIX, VECTOR]),
}
