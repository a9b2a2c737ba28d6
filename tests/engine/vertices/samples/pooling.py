"""Arguments of the codelets of `vertices/pooling.py` that no published row exercises."""

POOL = {"type": "half", "positions": 48, "row_width": 8, "kernel_elements": 4, "chans_per_group": 8}

SAMPLES = {
    "popnn::MaxPooling": POOL,
    "popnn::SumPooling": POOL,
    "popnn::MaxPoolingGrad": POOL,
    "popnn::MaxPoolingGradientScale": POOL,
    "popnn::SelectiveScaling": {},
}
