"""Arguments of the codelets of `vertices/loss.py` that no published row exercises."""

HALVES = {"type": "half"}

SAMPLES = {
    "popnn::LossSumSquaredTransform": HALVES | {"size": 96},
    "popnn::LossCrossEntropyTransform": HALVES | {"size": 96},
    "popnn::ReduceMaxClassGather": HALVES | {"size": 96},
    "popnn::ReduceMinClassGather": HALVES | {"size": 96},
    "popnn::ReduceMaxClassSparse": HALVES | {"size": 96},
    "popnn::ReduceMinClassSparse": HALVES | {"size": 96},
    "popnn::ReduceMaxNClassGather": {"size": 96, "k": 5},
    "popnn::ReduceMaxNClassSparse": {"size": 96, "k": 5},
    "popnn::CalcAccuracy": {"batch": 96},
}
