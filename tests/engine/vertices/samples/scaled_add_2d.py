"""Arguments of the codelets of `vertices/scaled_add_2d.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "popops::ScaledAdd2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::ScaledSubtract2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::aXPlusbY2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
    "popops::aXMinusbY2D": HALVES | {"scale_type": "float", "memory_constraints": True, "rows": [96, 48]},
    "popops::XMinusaXPlusbY2D": HALVES | {"memory_constraints": True, "rows": [96, 48]},
}
