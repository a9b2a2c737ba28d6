"""Samples of the operators of `ops/products.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32
from tests.engine.ops.sampled import Sample, sample

SAMPLES: dict[str, Sample] = {
    "matmul": sample(
        "dot_general",
        [((6, 10), F32), ((10, 4), F32)],
        [((6, 4), F32)],
        lhs_contract=(1,),
        rhs_contract=(0,),
        lhs_batch=(),
        rhs_batch=(),
    ),
    "convolution": sample(
        "conv_general_dilated",
        [((1, 6, 6, 4), F32), ((3, 3, 4, 8), F32)],
        [((1, 4, 4, 8), F32)],
        lhs_spec=(0, 3, 1, 2),
        rhs_spec=(3, 2, 0, 1),
        out_spec=(0, 3, 1, 2),
        window_strides=(1, 1),
        padding=((0, 0), (0, 0)),
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        feature_group_count=1,
        batch_group_count=1,
    ),
}
