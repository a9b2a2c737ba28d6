"""Samples of the operators of `ops/linear_algebra.py`."""

from __future__ import annotations

from tests.engine.ops.lowered import F32, body
from tests.engine.ops.sampled import Sample, sample


def _substitution() -> Sample:
    step = body("step", [((2, 2), F32), ((2, 3), F32)], ("div", (1, 1), ((2, 3), F32)), results=(2,))
    return sample("substitution", [((2, 2), F32), ((2, 3), F32)], [((2, 3), F32)], bodies=(step,))


SAMPLES: dict[str, Sample] = {
    "cholesky": sample("cholesky", [((3, 4, 4), F32)], [((3, 4, 4), F32)]),
    "triangular_solve": sample(
        "triangular_solve",
        [((3, 4, 4), F32), ((3, 4, 2), F32)],
        [((3, 4, 2), F32)],
        left_side=True,
        lower=True,
        transpose_a=False,
    ),
    "substitution": _substitution(),
    "triangular_inverse": sample("triangular_inverse", [((3, 4, 4), F32)], [((3, 4, 4), F32)]),
}
