"""Arguments of the codelets of `vertices/conv/mac.py` that no published row exercises."""

SAMPLES = {
    "poplin::ConvPartialHorizontalMac1x1": {"rows": 24, "row_width": 16, "in_chans": 8, "out_chans": 8},
    "poplin::ConvPartialVerticalMac": {"rows": 24, "kernel_height": 3, "kernel_width": 3, "out_elements": 96},
}
