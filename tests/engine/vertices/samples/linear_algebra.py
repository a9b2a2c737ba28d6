"""Arguments of the codelets of `vertices/linear_algebra.py` that no published row exercises."""

SAMPLES = {
    "poplin::InverseStdDeviation": {"rows": [96, 48]},
}
