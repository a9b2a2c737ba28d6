"""Arguments of the codelets of `vertices/histogram.py` that no published row exercises."""

HALVES = {"type": "half"}
COUNTED = {"type": "half", "is_absolute": True, "histogram_count": 25}

SAMPLES = {
    "popops::Histogram1D": COUNTED | {"split_by_limits": False, "n": 96},
    "popops::Histogram2D": COUNTED | {"rows": [96, 48]},
    "popops::HasNaNOrInf1D": HALVES | {"has_nan_or_inf": True, "size_in_8_bytes_per_worker": 24},
    "popops::HasNaNOrInf2D": HALVES | {"has_nan_or_inf": True, "rows": [96, 48]},
}
