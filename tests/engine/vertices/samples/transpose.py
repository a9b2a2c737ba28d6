"""Arguments of the codelets of `vertices/transpose.py` that no published row exercises."""

TRANSPOSE = {"type": "half", "rows": 16, "cols": 16, "matrices": 12}

SAMPLES = {
    "poplar_rt::Transpose1DSingleWorker": TRANSPOSE,
    "poplar_rt::Transpose1D": TRANSPOSE,
    "poplar_rt::SplitTranspose1D": TRANSPOSE | {"matrices": 2},
    "poplar_rt::Transpose2D": TRANSPOSE,
}
