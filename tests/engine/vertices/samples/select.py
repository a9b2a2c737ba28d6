"""Arguments of the codelets of `vertices/select.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "popops::SelectInPlace": HALVES | {"rows": [96, 48]},
    "popops::BroadcastSelect": {"type": "bool", "rows": [96, 48]},
    "popops::BroadcastSelectorSelect": HALVES | {"rows": [96, 48]},
    "popops::BroadcastSelectorSelectInPlace": HALVES | {"rows": [96, 48]},
    "popops::Clamp": HALVES | {"rows": [96, 48]},
    "popops::ClampInPlace": HALVES | {"n": 96},
    "popops::BroadcastClamp": HALVES | {"n": 96},
    "popops::BroadcastClampInPlace": HALVES | {"n": 96},
    "popops::Iota": {"type": "int", "n": 96},
    "popops::EncodeOneHot": {"index_type": "int", "output_type": "half", "indices": 12},
    "popops::EncodeOneHotCustomValues": {"index_type": "int", "output_type": "half", "indices": 12},
    "popops::CircOffset": {},
}
# Its published estimator counts rows, not their elements.
GROWN = {"popops::SelectInPlace": HALVES | {"rows": 4 * [96, 48]}}
