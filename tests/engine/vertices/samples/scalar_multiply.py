"""Arguments of the codelets of `vertices/scalar_multiply.py` that no published row exercises."""

SAMPLES = {
    "popops::ScalarMultiply1D": {"n": 96},
    "popops::ScalarMultiply1DInplace": {"n": 96},
    "popops::ScalarMultiply2D": {"rows": [96, 48]},
    "popops::ScalarMultiply2DInplace": {"rows": [96, 48]},
}
