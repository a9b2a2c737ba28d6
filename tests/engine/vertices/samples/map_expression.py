"""Arguments of the codelets of `vertices/map_expression.py` that no published row exercises."""

SAMPLES = {
    "popops::MapExpression": {
        "loads": ["half", "half"],
        "stores": ["half"],
        "operations": [["ADD", "half"], ["TANH", "half"]],
        "n": 96,
    },
}
