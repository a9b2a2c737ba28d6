"""Arguments of the codelets of `vertices/nonlinearity.py` that no published row exercises."""

CELL = {"op": "TANH", "type": "half"}

SAMPLES = {
    "popnn::NonLinearity1D": CELL | {"n": 96},
    "popnn::NonLinearity1DInPlace": CELL | {"n": 96},
    "popnn::NonLinearity2D": CELL | {"rows": [96, 48]},
    "popnn::NonLinearity2DInPlace": CELL | {"rows": [96, 48]},
    "popnn::NonLinearityGrad1D": CELL | {"n": 96},
    "popnn::NonLinearityGrad2D": CELL | {"rows": [96, 48]},
}
