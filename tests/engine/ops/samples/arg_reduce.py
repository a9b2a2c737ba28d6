"""Samples of the operators of `ops/arg_reduce.py`."""

from __future__ import annotations

from tests.engine.ops.sampled import I32, MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "arg_reduce": sample("argmax", [MATRIX], [((12,), I32)], axes=(1,), index_dtype=I32),
    "any_reduce": sample("reduce_xor", [((12, 10), I32)], [((12,), I32)], axes=(1,)),
}
