"""Arguments of the codelets of `vertices/copy.py` that no published row exercises."""

SAMPLES = {
    "poplar::Memcpy": {"bytes": 96},
    "poplar::StridedMemcpy": {"bytes": 96, "run_bytes": 6},
    "poplar::DstStridedMemcpy": {"bytes": 96, "pieces": 24},
    "stub": {"cycles": 96},
}
