"""Arguments of the codelets of `vertices/broadcast.py` that no published row exercises."""

INNER = {"op": "DIVIDE", "type": "half"}
OUTER = {"op": "ADD", "type": "half", "rows": 24, "columns": 32, "allow_misaligned": False}

SAMPLES = {
    "popops::BroadcastVectorInner1DInPlace": INNER | {"b_slice_len": 16, "b_broadcast_factor": 48, "b_slices_m1": 1},
    "popops::BroadcastVectorInner2D": INNER | {"slices": [[16, 48], [7, 5]]},
    "popops::BroadcastVectorInner2DInPlace": INNER | {"slices": [[16, 48], [7, 5]]},
    "popops::BroadcastVectorOuterByRow1D": OUTER,
    "popops::BroadcastVectorOuterByColumn1D": OUTER,
    "popops::BroadcastVectorOuterByRow1DInPlace": OUTER,
    "popops::BroadcastVectorOuterByColumn1DInPlace": OUTER,
}
