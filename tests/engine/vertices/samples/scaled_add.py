"""Arguments of the codelets of `vertices/scaled_add.py` that no published row exercises."""

SCALED = {"a_type": "half", "b_type": "half", "scale_type": "half", "memory_constraints": False}
AXPBY = {"type": "half", "scale_type": "float", "memory_constraints": True, "n": 96}

SAMPLES = {
    "popops::ScaledSubtractSupervisor": SCALED | {"n": 96},
    "popops::aXPlusbYSupervisor": AXPBY,
    "popops::aXMinusbYSupervisor": AXPBY,
    "popops::XMinusaXPlusbYSupervisor": AXPBY,
}
