"""Arguments of the codelets of `vertices/factorization.py` that no published row exercises."""

SAMPLES = {
    "poplin::experimental::LUDCoreVertex": {"align": 8, "depth": 24},
    "poplin::experimental::LUDRowVertex": {"align": 8, "depth": 24, "width": 16},
    "poplin::experimental::LUDColVertex": {"align": 4, "depth": 24, "height": 48},
    "poplin::experimental::LUDBlockVertex": {"align": 8, "depth": 24, "height": 48, "width": 16},
    "poplin::experimental::LUDCoreSplitVertex": {"height": 24, "width": 16},
    "poplin::experimental::LUDBlockSplitVertex": {"height": 24, "width": 16},
    "poplin::experimental::PartialSquareElements": {"elements": 96, "offset": 3},
    "poplin::experimental::Householder": {"elements": 96, "offset": 3},
    "poplin::experimental::Update": {"elements": 96, "rows": 24},
    "poplin::experimental::RowCopy": {"rows": 96},
}
