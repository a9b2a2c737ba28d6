"""Arguments of the codelets of `vertices/conv/winograd.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "poplin::WgdPartials": HALVES | {"pencils": 96, "common": 16, "depth": 16, "out_depth": 16},
    "poplin::WgdReduce": HALVES | {"elements": 96, "partials": 4},
    "poplin::WgdConvComplete": HALVES | {"elements": 96},
}
