"""Arguments of the codelets of `vertices/generic.py` that no published row exercises."""

SAMPLES = {
    "generic": {"elements": 96},
}
