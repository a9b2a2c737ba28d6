"""Samples of the operators of `ops/host.py`."""

from __future__ import annotations

from tests.engine.ops.sampled import MATRIX, Sample, sample

SAMPLES: dict[str, Sample] = {
    "host": sample("io_callback", [], [MATRIX]),  # what goes to the host is counted in test_host
}
