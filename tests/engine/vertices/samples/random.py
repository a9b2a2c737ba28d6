"""Arguments of the codelets of `vertices/random.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "poprand::Uniform": HALVES | {"n": 96},
    "poprand::Bernoulli": HALVES | {"n": 96},
    "poprand::Normal": HALVES | {"n": 96},
    "poprand::TruncatedNormal": HALVES | {"n": 96, "iterations": 4},
    "poprand::Dropout": HALVES | {"n": 96},
    "poprand::SetSeed": {},
}
