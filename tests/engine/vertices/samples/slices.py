"""Arguments of the codelets of `vertices/slices.py` that no published row exercises."""

HALVES = {"type": "half"}
UPDATE = {"type": "half", "scale_type": "float", "region_size": 32, "offsets": 8}
SLICE_2D = {"type": "half", "region_sizes": [32, 64], "num_sub_elements": 2, "num_base_elements": 8}

SAMPLES = {
    "popops::DynamicUpdateSlice1D": HALVES | {"region_size": 96, "num_sub_elements": 2, "num_base_elements": 8},
    "popops::DynamicSlice2D": SLICE_2D,
    "popops::DynamicUpdateSlice2D": SLICE_2D,
    "popops::MultiUpdate": HALVES | {"region_size": 32, "offsets": 8},
    "popops::MultiUpdateOp": {"type": "half", "op": "MAX", "region_size": 32, "offsets": 8},
    "popops::ScaledMultiUpdateOp": UPDATE,
    "popops::MultiUpdateAdd": UPDATE,
    "popops::SequenceSlice": HALVES | {"region_size": 32, "elements": 96, "sequences": 4},
}
