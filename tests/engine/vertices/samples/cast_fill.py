"""Arguments of the codelets of `vertices/cast_fill.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "popops::Cast1DSingleWorker": {"from_type": "half", "to_type": "float", "num_elems": 96},
    "popops::Cast2D": {"from_type": "half", "to_type": "float", "rows": [96, 48]},
    "popops::Fill2d": HALVES | {"rows": [96, 48]},
    "poplar::Memset": {"bytes": 96},
    "popops::CheckAccuracyWhenCast": {"input_type": "float", "output_type": "half"},
}
