"""Samples of the operators of `ops/dynamic_slice.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import I32, TABLE, Sample, sample

SAMPLES: dict[str, Sample] = {
    "dynamic_slice": sample("dynamic_slice", [TABLE, ((), I32), ((), I32)], [((3, 6), F32)], slice_sizes=(3, 6)),
    "dynamic_update": sample("dynamic_update_slice", [TABLE, ((3, 6), F32), ((), I32), ((), I32)], [TABLE]),
}
