"""Arguments of the codelets of `vertices/image.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "popops::NormaliseImage": {"in_type": "unsigned char", "out_type": "half", "pixels": 96},
    "popops::SplineBasis": HALVES | {"degree": 2, "rows": [96, 48]},
    "popops::SplineWeighting": HALVES | {"channels": 8, "splines": 4, "rows": [96, 48]},
    "popnn::ROIAlignForward": HALVES,
    "popnn::ROIAlignBackward": HALVES,
}
