"""Arguments of the codelets of `vertices/broadcast_types.py` that no published row exercises."""

TWO_TYPES = {"op": "VARIANCE_TO_INV_STD_DEV", "type": "float", "out_type": "half"}

SAMPLES = {
    "popops::BroadcastScalar2Types1D": TWO_TYPES | {"n": 96},
    "popops::BroadcastScalar2Types2DData": TWO_TYPES | {"rows": [96, 48]},
    "popops::BroadcastScalar1DRelationalOpDualOutput": {
        "op": "EQUAL",
        "type": "unsigned int",
        "out_type": "half",
        "n": 96,
    },
}
