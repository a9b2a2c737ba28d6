"""Samples of the operators of `ops/pooling.py`."""

from __future__ import annotations

from typing import Any

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import Sample, sample

WINDOW: dict[str, Any] = {
    "window_dimensions": (1, 2, 2, 1),
    "window_strides": (1, 2, 2, 1),
    "padding": ((0, 0),) * 4,
}
IMAGE, POOLED = ((2, 6, 6, 4), F32), ((2, 3, 3, 4), F32)

SAMPLES: dict[str, Sample] = {
    "pooling": sample("reduce_window_max", [IMAGE], [POOLED], **WINDOW),
    "select_and_scatter": sample("select_and_scatter_add", [POOLED, IMAGE], [IMAGE], select_prim="ge", **WINDOW),
    "select_and_gather": sample("select_and_gather_add", [IMAGE, IMAGE], [POOLED], select_prim="ge", **WINDOW),
}
