"""Shipped configurations of known models: whether a replica fits, and samples a second over all replicas."""

from __future__ import annotations

from typing import Any

from tests.fidelity.compiling import config
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.ipu.config import IPUConfig

# Model of a configuration -> (ready name or class of keras.applications, side of its images)
MODELS = {
    "resnet50": ("resnet50", 224),
    "mobilenet-v3-large": ("MobileNetV3Large", 224),
    "efficientnet-b0": ("EfficientNetB0", 224),
}
PRECISIONS = {"16.16": "float16", "32.32": "float32"}


def configuration(case: Case) -> Any:
    """`{"fits", "items_per_s"}` of a configuration on Bow."""
    if "hidden_size" in case:
        return NotRun("BERT over several IPUs is not built here")
    if not case.get("complete", True) or "model" not in case:
        return NotRun("the configuration is a part of others")
    if case.get("pipeline_splits"):
        return NotRun("stages cut by the layer names of another framework")
    model = MODELS.get(case["model"])
    if model is None:
        return NotRun(f"no model called {case['model']!r}")
    training = "optimizer" in case
    profile = api.profile(
        _source(*model),
        mode="training" if training else "inference",
        batch_size=case["micro_batch_size"],
        gradient_accumulation_steps=case.get("gradient_accumulation", 1) if training else None,
        precision=PRECISIONS[case.get("precision", "16.16")],
        config=_options(case),
        target="bow",
    )
    rate = profile.samples_per_second or 0.0
    return {"fits": bool(profile.fits), "items_per_s": round(rate * case.get("replicas", 1), 1)}


def _source(name: str, side: int) -> Any:
    if name.islower():
        return name

    def build() -> Any:
        import keras

        return getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3))

    return build


def _options(case: Case) -> IPUConfig:
    library = {"partialsType": "half" if case.get("half_partial") else "float"}
    if proportion := case.get("available_memory_proportion"):
        library["availableMemoryProportion"] = str(proportion[0])
    made: IPUConfig = config(matmuls=library, convolutions=library)
    return made
