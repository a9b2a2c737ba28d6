"""Arguments of the codelets of `vertices/ctc.py` that no published row exercises."""

SAMPLES = {
    "popnn::CTCAlpha": {"label": 96},
    "popnn::CTCBeta": {"label": 96},
    "popnn::CTCGradGivenAlpha": {"label": 96},
    "popnn::CTCGradGivenBeta": {"label": 96},
}
