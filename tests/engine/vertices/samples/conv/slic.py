"""Arguments of the codelets of `vertices/conv/slic.py` that no published row exercises."""

SAMPLES = {
    "poplin::ConvPartial1xNSLIC": {"positions": 96, "row_width": 16, "conv_groups": 2, "sub_kernels": 3},
}
