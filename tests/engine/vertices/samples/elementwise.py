"""Arguments of the codelets of `vertices/elementwise.py` that no published row exercises."""

CELL = {"op": "TANH", "type": "half"}

SAMPLES = {
    "popops::UnaryOp2DInPlace": CELL | {"rows": [96, 48]},
    "popops::BinaryOp2DInPlace": {"op": "MAXIMUM", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2DDataInPlace": {"op": "ADD", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2D": {"op": "ADD", "type": "half", "rows": [96, 48]},
    "popops::BroadcastScalar2DInPlace": {"op": "ADD", "type": "half", "rows": [96, 48]},
}
