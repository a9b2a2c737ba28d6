"""Samples of the operators of `ops/collectives.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import I32, MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "all_reduce": sample("psum", [MATRIX], [MATRIX]),
    "all_gather": sample("all_gather", [MATRIX], [((1, 12, 10), F32)]),
    "reduce_scatter": sample("reduce_scatter", [MATRIX], [MATRIX]),
    "all_to_all": sample("all_to_all", [MATRIX], [MATRIX]),
    "replica_number": sample("axis_index", [], [((), I32)]),
}
