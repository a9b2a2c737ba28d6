"""Options of the system: which IPUs, how they are reached, what is modelled, numbers, and pipelines."""

from __future__ import annotations

from workbench.base.whole import MOST_COUNT
from workbench.engine.options.declaration import category, option
from workbench.engine.options.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    SelectionOrder,
    StochasticRoundingBehaviour,
)

_FROZEN = "ipu/config/_freeze.py"

# The order of the API reference.
category("convolutions", "Options of convolutions.")
category("device_connection", "When and to which IPUs a program attaches.")
category("slices", "Options of gathers, scatters and embedding look-ups.")
category("experimental", "Options that a later release may change or drop.")
category("experimental.multi_replica_distribution", "One program run by several processes, some replicas each.")
category("floating_point_behaviour", "What the floating-point unit does on exceptions, and how it rounds halves.")
category("io_tiles", "Tiles set apart for input and output, which then overlap with compute.")
category("ipu_model", "The IPU that is modelled.")
category("matmuls", "Options of matrix multiplications.")
category("norms", "Options of batch, group, layer and instance normalisation.")
category("norms.experimental", "Options of normalisation that a later release may change or drop.")
category("optimizations", "What the compiler does to a graph on its way to a tile program.")
category("optimizations.math", "Rewriting of arithmetic.")
category("pooling", "Options of pooling.")
category("scheduling", "How the order of operations is chosen.")

option(
    "allow_recompute",
    False,
    bool,
    "Compute activations again in the backward pass instead of keeping them: less memory, more cycles. Operations "
    "with state are not computed again.",
    read_by="executable/pipelines.py",
    form_label="recomputation",
    form_place=12,
)
option(
    "selection_order",
    "AUTO",
    SelectionOrder,
    "Which IPU of the system becomes which shard; neighbours on a link copy faster than those a hop apart.",
    read_by="engine/lower/lower.py",
)
option(
    "serialization_output_folder",
    "",
    str,
    "Folder that compiled executables are saved in; empty saves none.",
    effect="recorded",
    reason="it says where a program is saved, and the program is the same",
)
option(
    "compilation_poplar_options",
    (),
    dict,
    "Options of Poplar's own compiler and its reports.",
    effect="recorded",
    reason="all but its reports steer Poplar's compiler, which does not run here",
)
option(
    "gcl_poplar_options",
    (),
    dict,
    "Options of the Graphcore Communication Library's collectives.",
    effect="recorded",
    reason="collectives are modelled from the links alone, without the library's choices",
)
option(
    "auto_select_ipus",
    0,
    int,
    "IPUs of each device: a number for one device, a list for several. 0 or empty: as many as the program needs.",
    many=True,
    read_by=("executable/compile.py", _FROZEN),
    minimum=0,
    maximum=64,
    form_label="IPUs",
    form_zero="as needed",
    form_place=7,
)
option(
    "select_ipus",
    None,
    int,
    "Numbers of the system's listing, one for each device; a multi-IPU number stands for all its IPUs.",
    many=True,
    read_by=_FROZEN,
    minimum=0,
    maximum=MOST_COUNT,
)

option(
    "device_connection.type",
    "ALWAYS",
    DeviceConnectionType,
    "When a program attaches to its IPUs; with PRE_COMPILE it runs nothing and gives zeros.",
    effect="numeric",
    read_by="ipu/_numbers.py",
)
option(
    "device_connection.version",
    "",
    str,
    "Architecture to compile for without an IPU; needed by PRE_COMPILE and NEVER.",
    effect="recorded",
    reason="the modelled IPU is chosen by the target, the described system or ipu_model.version",
    choices=("", "ipu1", "ipu2", "ipu21"),
)
option(
    "device_connection.enable_remote_buffers",
    False,
    bool,
    "Whether the system that will run the program has remote buffers; with ALWAYS the system itself is asked.",
    read_by="engine/passes/offload.py",
)

option(
    "experimental.always_rearrange_copies_on_the_host",
    False,
    bool,
    "Bring streamed data into tile order on the host rather than on the tiles.",
    effect="recorded",
    reason="no published figure gives the host's time to rearrange, and streams are modelled in tile order",
)
option(
    "experimental.enable_remote_buffer_embedding",
    False,
    bool,
    "Keep host embeddings in remote buffers.",
    effect="recorded",
    reason="host embeddings are modelled as host copies either way",
)
option(
    "experimental.enable_prng_stability",
    False,
    bool,
    "Round what all replicas have in common alike on all of them, so that stochastic rounding does not let their "
    "weights diverge; without it each replica rounds by its own chance.",
    effect="numeric",
    read_by="engine/frontends/numbers/numerics.py",
)
for _name, _what in (
    ("process_index", "Number of this process, from 0."),
    ("process_count", "How many processes share the replicas; 0 means this one has them all."),
):
    option(
        f"experimental.multi_replica_distribution.{_name}",
        0,
        int,
        _what,
        effect="recorded",
        reason="all replicas are modelled in this process",
        minimum=0,
        maximum=MOST_COUNT,
    )

for _name, _what in (
    ("inv", "an operation without a valid result"),
    ("div0", "a division by zero"),
    ("oflo", "an overflow"),
):
    option(
        f"floating_point_behaviour.{_name}",
        False,
        bool,
        f"Stop the run at {_what}.",
        effect="numeric",
        read_by="engine/frontends/numbers/numerics.py",
    )
option(
    "floating_point_behaviour.esr",
    "OFF",
    StochasticRoundingBehaviour,
    "Stochastic rounding of half-precision results.",
    effect="numeric",
    read_by="engine/frontends/numbers/numerics.py",
)
option(
    "floating_point_behaviour.nanoo",
    False,
    bool,
    "A half that overflows becomes NaN; without it, the largest half.",
    effect="numeric",
    read_by="engine/frontends/numbers/numerics.py",
)
option(
    "floating_point_behaviour.set_all",
    False,
    bool,
    "Switch on inv, div0, oflo, esr and nanoo together.",
    effect="numeric",
    read_by=_FROZEN,
)

option(
    "io_tiles.num_io_tiles",
    0,
    int,
    "Tiles of each IPU set apart for input and output.",
    read_by="engine/lower/io_tiles.py",
    minimum=0,
    maximum=1472,
)
option(
    "io_tiles.place_ops_on_io_tiles",
    False,
    bool,
    "Put the operations of input and output on those tiles.",
    read_by="engine/lower/io_tiles.py",
)
option(
    "io_tiles.available_memory_proportion",
    0.9,
    float,
    "Share of an I/O tile's memory that data may take; the rest is for code. What does not fit stays off these tiles.",
    read_by="engine/lower/io_tiles.py",
    minimum=0.0,
    maximum=1.0,
)

option(
    "ipu_model.compile_ipu_code",
    True,
    bool,
    "Count code (vertex, control and exchange code) in memory.",
    read_by="engine/compile/compile.py",
    form_label="count code",
    form_place=11,
)
option(
    "ipu_model.tiles_per_ipu",
    0,
    int,
    "Tiles of one IPU; 0 means all of them.",
    read_by="executable/request.py",
    minimum=0,
    maximum=1472,
    form_label="tiles per IPU",
    form_zero="all there are",
    form_place=6,
)
option(
    "ipu_model.version",
    "ipu2",
    str,
    "Which IPU is modelled; the default leaves it to the described system.",
    read_by=("executable/request.py", _FROZEN),
    choices=("ipu1", "ipu2", "bow", "ipu21"),
    form_label="IPU version",
    form_place=5,
)

option(
    "profile.execution",
    "TILE_PROFILE",
    ExecutionProfileType,
    "How much of the trace a profile keeps: nothing, the device's, every IPU's or every tile's.",
    kind="argument",
    effect="recorded",
    reason="it chooses what a profile keeps of the trace, and the program is the same",
)
option(
    "opt.internalExchangeOptimisationTarget",
    "cycles",
    str,
    "What exchanges inside an IPU aim at: few cycles, little code, or both. An engine option, set through "
    "compilation_poplar_options or POPLAR_ENGINE_OPTIONS.",
    kind="argument",
    effect="recorded",
    reason="exchanges take the cycles of the faster way and the code of the leaner one under every aim: Poplar's rules "
    "are not published, and with the code of the faster way models that fit an IPU would not fit here",
    choices=("cycles", "balanced", "memory"),
    source="graphcore/examples@3cc8f81f vision/unet_medical/tensorflow2/README.md, section 7: cycles by default",
)
option(
    "synthetic_data",
    (),
    str,
    "Kinds of data that are not copied between host and IPU, as TF_POPLAR_FLAGS has them. Parameters are arguments, "
    "results and variables of a program.",
    kind="argument",
    read_by=("engine/lower/synthetic.py", "ipu/_numbers.py"),
    choices=("seed", "infeed", "outfeed", "hostembedding", "parameters"),
    many=True,
    source="graphcore/tensorflow tensorflow/compiler/plugin/poplar/docs/device_selection.rst",
)
option(
    "pipeline.schedule",
    "Grouped",
    str,
    "Order in which the stages of a pipeline run.",
    kind="argument",
    read_by="engine/lower/lower.py",
    choices=("Grouped", "Interleaved", "Sequential"),
    form_label="pipeline schedule",
    form_place=8,
)
option(
    "pipeline.device_mapping",
    (),
    int,
    "IPU of each stage of a pipeline, by number; empty: one each, in order.",
    kind="argument",
    read_by="engine/lower/lower.py",
    minimum=0,
    maximum=MOST_COUNT,
    many=True,
)
option(
    "pipeline.recomputation_mode",
    "Auto",
    str,
    "How activations are computed again when `allow_recompute` is set: all of a stage, then its backward pass, or each "
    "part right before the backward pass that needs it. Auto: the first under Grouped and Interleaved, the second "
    "where checkpoints are named, nothing under Sequential without, where it would save nothing.",
    kind="argument",
    read_by="executable/pipelines.py",
    choices=("Auto", "RecomputeThenBackpropagate", "RecomputeAndBackpropagateInterleaved"),
)
option(
    "pipeline.recomputation_checkpoints",
    (),
    str,
    "Layers, by name or pattern, whose results are kept when activations are computed again.",
    kind="argument",
    read_by="executable/pipelines.py",
    many=True,
)
option(
    "pipeline.gradient_accumulation_steps",
    1,
    int,
    "Micro-batches whose gradients are added before one weight update.",
    kind="argument",
    read_by="executable/request.py",
    minimum=1,
    maximum=MOST_COUNT,
    form_label="gradient accumulation",
    form_place=9,
)
