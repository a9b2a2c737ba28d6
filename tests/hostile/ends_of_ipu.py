"""How cells of the classes of `wb.ipu` and of pipelines end: which classes of value give a result."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.ends_of_tf import ARRAYS, NUMBERS, TEXTS

PIPELINE = "ipu.ops.pipelining_ops.pipeline"
OF_32_BITS = "negative|zero|float|nan|infinite|numpy scalar"
REPLICAS = "ipu.ops.cross_replica_ops.cross_replica"
OPTIONS = "ipu.ops.pipelining_ops.PipelineStageOptions"
OUTPUT = "ipu.ops.pipelining_ops.OptimizerFunctionOutput"
QUEUES = ("ipu_infeed_queue.IPUInfeedQueue", "ipu_outfeed_queue.IPUOutfeedQueue")
OFFLOADED = (
    *("offload_weight_update_variables", "offload_activations", "offload_gradient_accumulation_buffers"),
    *("offload_weights", "replicated_weight_sharding"),
)
SWITCHES = ("set_asynchronous_callbacks.asynchronous",)
LEFT = (
    "set_gradient_accumulation_options.experimental_normalize_gradients",
    *("set_pipelining_options.accumulate_outfeed", "set_pipelining_options.experimental_normalize_gradients"),
)
MODELS = ("Model", "Sequential", "PipelineSequential")
RUNS, OF_RUNS = ("fit", "evaluate", "predict"), ("steps", "steps_per_run")
UNKNOWN = "nosuch"
LAYERS = "ipu.keras.layers"
NORMS, PARTS = ("GroupNormalization", "InstanceNormalization", "LayerNormalization"), ("beta", "gamma")
DEVICES = "zero"  # the one that is configured
WHOLE = "zero|past 64 bits|10**18|numpy scalar"

RESULTS: Mapping[str, str] = {
    "ipu.ipu_infeed_queue.IPUInfeedQueue.dataset": "numpy array",
    "ipu.ipu_infeed_queue.IPUIterator.dataset": "numpy array",
    "ipu.ipu_infeed_queue.IPUInfeedQueue.prefetch_depth": "none|numpy scalar",
    **{f"ipu.{name}.device_ordinal": f"none|{DEVICES}" for name in QUEUES},
    **{f"ipu.{name}.optimise_latency": "true" for name in QUEUES},
    "ipu.ipu_outfeed_queue.ScopedIPUOutfeedQueue.device_ordinal": f"none|{DEVICES}",
    "ipu.ipu_outfeed_queue.IPUOutfeedQueue.buffer_depth": "past 64 bits|10**18|numpy scalar",
    "ipu.ipu_strategy.IPUStrategyV1.enable_dataset_iterators": "true",
    "ipu.ipu_strategy.IPUStrategyV1.enable_keras_extensions": "true",
    **{f"{OUTPUT}.{name}_gradients_kwargs": "none|dict" for name in ("compute", "apply")},
    **{f"{OPTIONS}.{name}_options": "none|dict" for name in ("convolution", "matmul", "slice")},
    "ipu.IPUOutfeedQueue.enqueue.tensors": "numpy scalar|numpy array",
    **{f"ipu.IPUStrategyV1.{name}.args": "empty list|nested list" for name in ("run", "experimental_run_v2")},
    **{f"ipu.IPUStrategyV1.{name}.kwargs": "none|dict" for name in ("run", "experimental_run_v2")},
    "ipu.IPUStrategyV1.reduce.value": f"none|true|{NUMBERS}|{ARRAYS}|dict",
    "ipu.IPUStrategyV1.experimental_distribute_dataset.dataset": f"{ARRAYS}|numpy objects|nested list|in itself",
    **{f"{PIPELINE}.{name}": "none|true" for name in OFFLOADED},
    f"{PIPELINE}.replicated_optimizer_state_sharding": "none|true",
    **{f"{PIPELINE}.{name}": "numpy scalar" for name in ("gradient_accumulation_count", "repeat_count")},
    **{f"{PIPELINE}.{name}": "true" for name in ("outfeed_loss", "accumulate_outfeed")},
    f"{PIPELINE}.inputs": "none|empty list",
    f"{PIPELINE}.name": f"none|{TEXTS}",
    f"{PIPELINE}.accumulate_outfeed_dtype": "none",  # asked where something is accumulated
    f"{REPLICAS}_sum.x": f"{OF_32_BITS}|{ARRAYS}",
    f"{REPLICAS}_mean.x": f"float|nan|infinite|{ARRAYS}",
    **{f"{REPLICAS}_{name}.replica_group_size": "none|past 64 bits|10**18|numpy scalar" for name in ("sum", "mean")},
    **{f"{REPLICAS}_{name}.name": f"none|{TEXTS}" for name in ("sum", "mean")},
    "ipu.ops.cross_replica_ops.assume_equal_across_replicas.tensors": f"none|true|{OF_32_BITS}|{ARRAYS}|dict",
    "ipu.ops.cross_replica_ops.assume_equal_across_replicas.inplace": "true",
    "ipu.devices.check_ipus.wanted": "negative|zero|numpy scalar",
    "ipu.devices.check_ipus.what": TEXTS,
    "ipu.devices.check_ipus.target": "target",
    "ipu.scopes.outside_compilation_scope.name": TEXTS,
    "ipu.utils.load_executable.path": "",
    **{f"ipu.ModelExtension.{name}": "true" for name in SWITCHES},
    **{f"ipu.ModelExtension.{name}": "none|true" for name in LEFT},
    "ipu.ModelExtension.print_pipeline_stage_assignment_summary.line_length": "none",
    # models of TensorFlow 2.1
    **{f"ipu.keras.{name}.gradient_accumulation_count": "numpy scalar" for name in MODELS},
    "ipu.keras.Sequential.layers": "none|empty list",
    **{f"ipu.keras.Sequential.{name}.verbose": "true|zero" for name in RUNS},
    **{f"ipu.keras.Sequential.{name}.callbacks": "none|empty list" for name in RUNS},
    **{f"ipu.keras.Sequential.{name}.prefetch_depth": "none|numpy scalar" for name in RUNS},
    **{f"ipu.keras.Sequential.{name}.{steps}": "none|numpy scalar" for name in RUNS[1:] for steps in OF_RUNS},
    **{f"ipu.keras.Sequential.{name}.{UNKNOWN}": "none" for name in RUNS},
    # eight samples are less than a batch as Keras has it
    **{f"ipu.keras.Sequential.{name}.batch_size": "numpy scalar" for name in RUNS},
    **{f"ipu.keras.Sequential.{name}.x": "" for name in RUNS},
    **{f"ipu.keras.Sequential.{name}.y": "" for name in RUNS[:2]},
    "ipu.keras.Sequential.fit.steps_per_epoch": "none",
    "ipu.keras.Sequential.fit.epochs": "numpy scalar",
    "ipu.keras.Sequential.fit.shuffle": "true",
    "ipu.keras.Sequential.fit.initial_epoch": "zero|numpy scalar",
    # layers of Keras
    f"{LAYERS}.dropout.Dropout.rate": "zero",
    f"{LAYERS}.dropout.Dropout.seed": "none",
    f"{LAYERS}.dropout.Dropout.noise_shape": "none|empty list",
    **{f"{LAYERS}.embedding.Embedding.{name}": "numpy scalar" for name in ("input_dim", "output_dim")},
    f"{LAYERS}.embedding.Embedding.embeddings_initializer": "callable|class",
    f"{LAYERS}.marks.AssumeEqualAcrossReplicas.inplace": "true",
    **{f"{LAYERS}.norms.{norm}.{name}": "true" for norm in NORMS for name in ("center", "scale", "trainable")},
    f"{LAYERS}.norms.GroupNormalization.strided_channel_grouping": "true",
    f"{LAYERS}.norms.GroupNormalization.groups": "numpy scalar",
    **{f"{LAYERS}.norms.{norm}.channels_axis": f"negative|{WHOLE}" for norm in NORMS[:2]},
    f"{LAYERS}.norms.LayerNormalization.axis": "negative|zero|past 64 bits|10**18",
    **{f"{LAYERS}.norms.{norm}.epsilon": f"{WHOLE}|float" for norm in NORMS},
    **{f"{LAYERS}.norms.{norm}.{part}_initializer": "none|callable|class" for norm in NORMS for part in PARTS},
    **{f"{LAYERS}.norms.{norm}.name": "none|empty text|controls|markup|turned|half a character" for norm in NORMS},
    # without them these stages have nothing to take or nowhere to give it to
    **dict.fromkeys((f"{PIPELINE}.infeed_queue", f"{PIPELINE}.outfeed_queue"), ""),
    f"{PIPELINE}.device_mapping": "none",
    "ipu.gradient_accumulation.GradientAccumulationReductionMethod.parse.reduction_method": "",
    "ipu.ipu_infeed_queue.IPUIterator.infeed_spec": "none",
}
OWN: Mapping[str, str] = {
    f"{PIPELINE}.gradient_accumulation_dtype": "callable|class",
    "ipu.ModelExtension.print_pipeline_stage_assignment_summary.print_fn": "callable|class",
    f"{PIPELINE}.optimizer_function": "callable|class",
    f"{OUTPUT}.loss": "",
}
