"""Arguments of the codelets of `vertices/row_scalars.py` that no published row exercises."""

HALVES = {"type": "half"}
COLUMNS = {"type": "half", "params": 2, "region_widths": [2, 3], "region_heights": [4, 5]}

SAMPLES = {
    "popops::UpdateIntervalDEC": HALVES | {"row_count": 96},
    "popops::SelectFromInterval": HALVES | {"row_count": 96},
    "popops::UpdateIntervalsDEC": HALVES | {"params": 2, "row_counts": [24, 48]},
    "popops::SelectFromIntervals": HALVES | {"params": 2, "row_counts": [24, 48]},
    "popops::UpdateColumnsDEC": COLUMNS,
    "popops::SelectFromRowsInColumns": COLUMNS,
}
