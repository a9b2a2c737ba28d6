"""Shipped configurations of known models: whether a replica fits, and samples a second over all replicas."""

from __future__ import annotations

from itertools import accumulate
from statistics import mode
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
HEAD_SIZE = 64  # of every BERT: google-research/bert README
PRECISIONS = {"16.16": "float16", "32.32": "float32"}


def configuration(case: Case) -> Any:
    """`{"fits", "items_per_s"}` of a configuration on Bow."""
    if "hidden_size" in case:
        return _bert(case)
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
        replicas=case.get("replicas", 1),
        config=_options(case),
        target="bow",
    )
    return _answer(profile)


def _answer(profile: Any) -> dict[str, Any]:
    return {"fits": bool(profile.fits), "items_per_s": round(profile.samples_per_second or 0.0, 1)}


def _bert(case: Case) -> dict[str, Any]:
    """BERT as the ready model has it, with a classifier for its head: layers by IPU, a checkpoint after each.

    One proportion of available memory holds for all IPUs: the one most of them have.
    """
    split, hidden = case["layers_per_ipu"], case["hidden_size"]
    bounds = list(accumulate(split))[:-1]
    proportions = case["matmul_proportion"]
    proportions = proportions if isinstance(proportions, list) else [proportions]
    library = {
        "partialsType": "half" if case["enable_half_partials"] else "float",
        "availableMemoryProportion": str(mode(proportions)),
    }
    made: IPUConfig = config(matmuls=library, convolutions=library)
    made.auto_select_ipus = case["ipus_per_replica"] * case["replication_factor"]
    profile = api.profile(
        api.ready(
            "bert-large",
            layers=case["num_hidden_layers"],
            hidden=hidden,
            heads=hidden // HEAD_SIZE,
            sequence_length=case["sequence_length"],
        ),
        mode="training",
        optimizer=_optimizer(case["optimizer"]),
        batch_size=case["micro_batch_size"],
        precision="float16",
        stages=[f"encoder_{bound - 1}" if bound else "embedding_norm" for bound in bounds],
        gradient_accumulation_steps=case["gradient_accumulation"],
        replicas=case["replication_factor"],
        recomputation=case["recompute_checkpoint_every_layer"],
        recomputation_checkpoints=("encoder_*",),
        offload=("optimizer_state",) if case["optimizer_state_offchip"] else (),
        config=made,
        target="bow",
    )
    return _answer(profile)


def _optimizer(name: str) -> Any:
    import keras

    return keras.optimizers.Lamb(1e-3) if name.startswith("LAMB") else keras.optimizers.AdamW(1e-3)


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
    made.auto_select_ipus = case.get("replicas", 1)
    return made
