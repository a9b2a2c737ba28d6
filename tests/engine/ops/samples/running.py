"""Samples of the operators of `ops/running.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import Sample, sample

SAMPLES: dict[str, Sample] = {
    "running": sample("cumsum", [((3, 300), F32)], [((3, 300), F32)], axis=1, reverse=False),
}
