"""Shipped configurations of known models: whether a replica fits, and samples a second over all replicas."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from tests.fidelity.compiling import config
from tests.fidelity.outcome import Case, NotRun
from workbench import api
from workbench.engine.frontends.staging.stages import even_stages
from workbench.ipu.config import IPUConfig

# Model of a configuration -> (class of keras.applications, side of its images)
MODELS = {
    "resnet50": ("ResNet50", 224),
    "mobilenet-v3-large": ("MobileNetV3Large", 224),
    "efficientnet-b0": ("EfficientNetB0", 224),
}
SCALES = frozenset({"MobileNetV3Large", "EfficientNetB0"})  # begin with a layer that scales their images
# The layer that begins a stage there -> the last one before it here.
CUT_AFTER = {
    "blocks/3/0/conv_pw": "block3b_add",
    "mb_block/2/seq/0": "expanded_conv_1_project_bn",
    "mb_block/7/seq/0": "expanded_conv_6_project_bn",
    "mb_block/11/seq/0": "expanded_conv_10_project_bn",
}
BLOCKS = (3, 4, 6, 3)  # of each of ResNet-50's four layers
# What the application sets besides for each model it trains, where a row leaves it out: graphcore/examples v3.4.1
# vision/cnns/pytorch/train/configs.yml.
APPLICATION: dict[str, dict[str, Any]] = {
    "resnet50": {"disable_stable_batchnorm": True},
    "efficientnet-b0": {"efficientnet_expand_ratio": 4, "efficientnet_group_dim": 16, "norm_num_groups": 4},
}
HEAD_SIZE = 64  # of every BERT: google-research/bert README
PRECISIONS = {"16.16": "float16", "32.32": "float32"}


def configuration(case: Case) -> Any:
    """`{"fits", "items_per_s"}` of a configuration on Bow.

    PopTorch computes pipelined stages again unless told otherwise (graphcore/poptorch poptorch/source/Compiler.cpp,
    `ExecutionMode::Pipelined`: "If we are pipelining we want to turn on recompute by default").
    """
    if "hidden_size" in case:
        return _bert(case)
    if not case.get("complete", True) or "model" not in case:
        return NotRun("the configuration is a part of others")
    model = MODELS.get(case["model"])
    if model is None:
        return NotRun(f"no model called {case['model']!r}")
    case = with_application(case)
    splits = case.get("pipeline_splits", [])
    if not set(splits) <= CUT_AFTER.keys():
        return NotRun(f"layers of another framework: {sorted(set(splits) - CUT_AFTER.keys())}")
    training = "optimizer" in case
    source = source_of(*model, case)
    checkpoints = tuple(map(keras_name, case.get("recompute_checkpoints", ())))
    stages = [CUT_AFTER[split] for split in splits] or (even_stages(source, 1) if checkpoints else None)
    profile = api.profile(
        source,
        mode="training" if training else "inference",
        batch_size=case["micro_batch_size"],
        stages=stages,
        recomputation=bool(stages) or None,
        recomputation_checkpoints=checkpoints,
        gradient_accumulation_steps=_accumulation(case) if training else None,
        precision=PRECISIONS[case.get("precision", "16.16")],
        replicas=case.get("replicas", 1),
        config=_options(case),
        target="bow",
    )
    return _answer(profile)


def with_application(case: Case) -> Case:
    """The row with the application's own settings of its model, where the row says nothing of them."""
    return {**APPLICATION.get(case["model"], {}), **case}


def enlarged(case: Case, times: int) -> dict[str, Any]:
    """The same of a configuration with its micro-batch multiplied."""
    found: dict[str, Any] = configuration({**case, "micro_batch_size": times * case["micro_batch_size"]})
    return found


def _answer(profile: Any) -> dict[str, Any]:
    return {"fits": bool(profile.fits), "items_per_s": round(profile.samples_per_second or 0.0, 1)}


def _bert(case: Case) -> dict[str, Any]:
    """BERT as the ready model has it, with a classifier for its head: layers by IPU, a checkpoint after each."""
    split, hidden = case["layers_per_ipu"], case["hidden_size"]
    bounds = list(accumulate(split))[:-1]
    library: dict[str, Any] = {
        "partialsType": "half" if case["enable_half_partials"] else "float",
        "availableMemoryProportion": case["matmul_proportion"],
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
        offload=_optimizer_state(case),
        config=made,
        target="bow",
    )
    return _answer(profile)


def _optimizer_state(case: Case) -> tuple[str, ...]:
    """Where the optimizer's state lives: in streaming memory, or on the chip, whole or in shares with the replicas."""
    if case["optimizer_state_offchip"]:
        return ("optimizer_state",)
    return ("optimizer_state_to_replicas",) if case["replicated_tensor_sharding"] else ()


def _optimizer(name: str) -> Any:
    import keras

    return keras.optimizers.Lamb(1e-3) if name.startswith("LAMB") else keras.optimizers.AdamW(1e-3)


def keras_name(node: str) -> str:
    """The layer here of a node of torchvision's ResNet-50: "add_3", "layer4/0/downsample/1", "avgpool" or "fc"."""
    last = {"avgpool": "avg_pool", "fc": "predictions"}
    if node in last:
        return last[node]
    if node.startswith("add"):
        blocks = [
            f"conv{layer}_block{block + 1}_add" for layer, count in enumerate(BLOCKS, 2) for block in range(count)
        ]
        return blocks[int(node.partition("_")[2] or 0)]
    layer, block, *rest = node.replace("downsample_", "downsample/").split("/")
    kind = "conv" if rest[-1].startswith("conv") or rest[-1] == "0" else "bn"
    number = 0 if rest[0] == "downsample" else int(rest[-1][-1])
    return f"conv{int(layer[-1]) + 1}_block{int(block) + 1}_{number}_{kind}"


def _accumulation(case: Case) -> int:
    """Micro-batches of an update, up to whole rounds of a Grouped pipeline: PopART's takes any number."""
    count = int(case.get("gradient_accumulation", 1))
    stages = len(case.get("pipeline_splits", ())) + 1
    return count if stages == 1 else -(-count // (2 * stages)) * 2 * stages


def source_of(name: str, side: int, case: Case) -> Any:
    """A builder of the model as the application makes it: images of one byte a colour that the IPU scales, blocks of
    EfficientNet with another ratio of channels, groups of channels where it has each by itself, group norms.
    """

    def build() -> Any:
        import keras
        from keras.src.applications.efficientnet import DEFAULT_BLOCKS_ARGS, EfficientNet

        bytewise = case.get("eight_bit_io")
        images = keras.Input((side, side, 3), dtype="uint8" if bytewise else None, name="images")
        scaled = keras.layers.Rescaling(1 / 255)(images) if bytewise and name not in SCALES else images
        ratio = case.get("efficientnet_expand_ratio")
        if ratio is None:
            made = getattr(keras.applications, name)(weights=None, input_tensor=scaled)
        else:
            blocks = [
                {**block, "expand_ratio": ratio if block["expand_ratio"] > 1 else 1} for block in DEFAULT_BLOCKS_ARGS
            ]
            made = EfficientNet(1.0, 1.0, side, blocks_args=blocks, weights=None, input_tensor=scaled)
        if case.get("norm_type") != "group":
            return made
        return keras.models.clone_model(
            made,
            clone_function=lambda layer: _in_groups(layer, case),
            call_function=lambda layer, *inputs, mask=None, **more: layer(*inputs, **more),
        )

    return build


def _in_groups(layer: Any, case: Case) -> Any:
    """The layer with groups of channels where it has each by itself, and with a group norm for a batch norm."""
    import keras

    settings = layer.get_config()
    if isinstance(layer, keras.layers.DepthwiseConv2D):
        channels = int(layer.input.shape[-1])
        kept = ("kernel_size", "strides", "padding", "use_bias", "name")
        groups = channels // case["efficientnet_group_dim"]
        return keras.layers.Conv2D(channels, groups=groups, **{key: settings[key] for key in kept})
    if isinstance(layer, keras.layers.BatchNormalization):
        return keras.layers.GroupNormalization(groups=case["norm_num_groups"], name=settings["name"])
    return layer.__class__.from_config(settings)


def _options(case: Case) -> IPUConfig:
    library = {"partialsType": "half" if case.get("half_partial") else "float"}
    if proportion := case.get("available_memory_proportion"):
        library["availableMemoryProportion"] = str(proportion[0])
    made: IPUConfig = config(matmuls=library, convolutions=library)
    if aim := case.get("exchange_memory_target"):
        # graphcore/examples v3.4.1 vision/cnns/pytorch/utils/ipu_settings.py hands it on so
        made.compilation_poplar_options = {"opt.internalExchangeOptimisationTarget": aim}
    made.norms.use_stable_statistics = "optimizer" in case and not case.get("disable_stable_batchnorm")
    made.auto_select_ipus = case.get("replicas", 1) * (len(case.get("pipeline_splits", ())) + 1)
    return made
