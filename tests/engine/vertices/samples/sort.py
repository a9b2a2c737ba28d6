"""Arguments of the codelets of `vertices/sort.py` that no published row exercises."""

SWAP = {"key_type": "float", "pairs": 96, "distance": 16, "distance_to_change_order": 64}

SAMPLES = {
    "popops::HeapSortVertex": {"type": "int", "n": 96},
    "popops::HeapSortVertexKV": {"key_type": "int", "value_type": "half", "n": 96},
    "popops::CompareAndSwapAtDistance": SWAP,
    "popops::CompareAndSwapAtDistanceKeyVal": SWAP | {"value_type": "int", "values_are_secondary_key": True},
}
