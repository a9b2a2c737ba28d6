"""Samples of the operators of `ops/inter_ipu.py`."""

from __future__ import annotations

from tests.engine.ops.sampled import MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "inter_ipu_copy": sample("inter_ipu_copy", [MATRIX], [MATRIX], source=0, to=0),
}
