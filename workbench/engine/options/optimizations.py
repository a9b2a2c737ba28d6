"""Options of what the compiler does to a graph: rewriting, combining, outlining, buffers, norms and the schedule."""

from __future__ import annotations

from workbench.base.whole import MOST_BYTES, MOST_COUNT
from workbench.engine.options.declaration import option
from workbench.engine.options.enums import MergeRemoteBuffersBehaviour, SchedulingAlgorithm

_REWRITE = "engine/passes/simplify.py"
_COMBINE = "engine/passes/combine.py"
_EXPAND = "engine/passes/expand.py"
_MERGE = "engine/passes/merge.py"
_SCHEDULE = "engine/passes/schedule/schedule.py"

option(
    "norms.use_stable_statistics",
    False,
    bool,
    "Subtract the mean before the variance is taken: steadier numbers, more cycles.",
    read_by="engine/passes/norm_moments.py",
)
option(
    "norms.experimental.distributed_batch_norm_replica_group_size",
    1,
    int,
    "Replicas whose batch statistics are averaged in every batch normalisation, by an all-reduce each time. Not with "
    "I/O tiles, and not in a pipeline.",
    read_by="executable/request.py",
    minimum=1,
    maximum=MOST_COUNT,
)

option(
    "optimizations.math.fast",
    False,
    bool,
    "Rewrite arithmetic without regard to rounding, infinities and NaN: quotients by a repeated divisor, powers of a "
    "half, products with zero. Faster; the numbers of a run stay the host's.",
    read_by=_REWRITE,
)
option(
    "optimizations.math.dot_strength",
    True,
    bool,
    "Turn a dot product whose one operand has only batch and contracted dimensions into a product and a sum.",
    read_by=_REWRITE,
)
option(
    "optimizations.prefetch_data_streams",
    True,
    bool,
    "The host fetches the next batch while this one computes.",
    read_by="engine/lower/lower.py",
)
option(
    "optimizations.combine_embedding_lookups",
    False,
    bool,
    "Make one look-up of all look-ups in one table: faster perhaps, with more memory.",
    read_by=_COMBINE,
)
option(
    "optimizations.combine_matmuls",
    False,
    bool,
    "Make one matmul of those that share an operand.",
    read_by=_COMBINE,
)
option(
    "optimizations.enable_graph_outlining",
    True,
    bool,
    "Keep repeated operators once and call them; trades copies of arguments for code.",
    read_by="engine/lower/replay/bodies.py",
    form_label="outlining",
    form_place=10,
)
option(
    "optimizations.merge_infeed_io_copies",
    True,
    bool,
    "Copy all inputs of a batch from the host at once: fewer syncs, more live memory.",
    read_by="engine/lower/lower.py",
)
option(
    "optimizations.maximum_cross_replica_sum_buffer_size",
    0,
    int,
    "Bytes of all-reduces between replicas that may wait to be done as one: larger buffers, fewer steps and less code. "
    "0: none waits.",
    read_by=_MERGE,
    minimum=0,
    maximum=MOST_BYTES,
)
for _name, _what in (
    ("maximum_reduce_scatter_buffer_size", "reduce-scatters between replicas"),
    ("maximum_inter_ipu_copies_buffer_size", "copies between IPUs"),
    ("maximum_send_recv_cluster_size", "host sends and receives"),
    ("maximum_reduce_many_buffer_size", "reductions"),
    ("maximum_all_gather_buffer_size", "all-gathers between replicas"),
):
    option(
        f"optimizations.{_name}",
        0,
        int,
        f"Bytes of {_what} that may wait to be done as one: larger buffers, fewer steps and less code. 0: none waits.",
        read_by=_MERGE,
        minimum=0,
        maximum=MOST_BYTES,
    )
option(
    "optimizations.minimum_remote_tensor_size",
    128,
    int,
    "Bytes from which a tensor may be kept in remote memory.",
    read_by="engine/passes/offload.py",
    minimum=0,
    maximum=MOST_BYTES,
)
option(
    "optimizations.merge_remote_buffers",
    "IF_BENEFICIAL",
    MergeRemoteBuffersBehaviour,
    "Whether remote buffers of one shape become one, so that the code that reads them can be shared.",
    read_by="engine/lower/lower.py",
)
option(
    "optimizations.enable_gather_simplifier",
    True,
    bool,
    "Plan gathers as embedding look-ups are planned; otherwise their tables are spread by columns.",
    read_by="engine/ops/gather.py",
)
option(
    "optimizations.triangular_solve_expander_block_size",
    0,
    int,
    "Rows of the blocks that a triangular solve works on, each on one tile; 0: 128.",
    read_by=_EXPAND,
    minimum=0,
    maximum=MOST_COUNT,
)
option(
    "optimizations.cholesky_block_size",
    0,
    int,
    "Rows of the blocks that a Cholesky factorisation works on, each on one tile; 0: 128.",
    read_by=_EXPAND,
    minimum=0,
    maximum=MOST_COUNT,
)
option(
    "optimizations.enable_fast_math",
    False,
    bool,
    "The former place of optimizations.math.fast; either switches it on.",
    read_by="ipu/config/_freeze.py",
    deprecated="'enable_fast_math' is now 'optimizations.math.fast'; a later release will drop it here.",
)
option(
    "optimizations.enable_dynamic_slice_replacement",
    True,
    bool,
    "Use planned look-ups for dynamic slices and updates of one entry: better spread over tiles.",
    read_by=_REWRITE,
)

option(
    "scheduling.algorithm",
    "CHOOSE_BEST",
    SchedulingAlgorithm,
    "How the order of operations is found.",
    read_by=_SCHEDULE,
)
option(
    "scheduling.maximum_scheduler_lookahead_depth",
    5,
    int,
    "Operations that LOOK_AHEAD looks past a decision; its search grows fast with it.",
    read_by=_SCHEDULE,
    minimum=1,
    maximum=MOST_COUNT,
)
option(
    "scheduling.maximum_scheduler_search_space_size",
    64,
    int,
    "Orders that LOOK_AHEAD compares at most.",
    read_by=_SCHEDULE,
    minimum=1,
    maximum=MOST_COUNT,
)
