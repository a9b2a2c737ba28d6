"""Options of what is kept off the chip, or in shares on all replicas."""

from __future__ import annotations

from workbench.engine.options.declaration import option

_OFFLOAD = "engine/passes/offload.py"

for _name, _what in (
    (
        "offload_weight_update_variables",
        "Keep what only the weight update reads (momenta, say) in streaming memory: less memory, slower updates.",
    ),
    (
        "offload_gradient_accumulation_buffers",
        "Keep the sums of gradients in streaming memory: less memory, two copies more for every micro-batch.",
    ),
    (
        "offload_weights",
        "Keep the weights in streaming memory, a share of them with each replica: less memory, a copy at every use.",
    ),
    (
        "replicated_optimizer_state_sharding",
        "With offload_weight_update_variables: each replica keeps a share, gathered for the update. Without replicas "
        "there is nothing to share.",
    ),
    (
        "optimizer_state_sharding",
        "Each replica keeps a share of what only the weight update reads on the chip, gathered for the update.",
    ),
    (
        "replicated_weight_sharding",
        "Each replica keeps a share of the weights on the chip, gathered at every use.",
    ),
):
    option(f"pipeline.{_name}", False, bool, _what, kind="argument", read_by=_OFFLOAD)

option(
    "pipeline.offload_activations",
    False,
    bool,
    "Keep what waits for its backward pass in streaming memory: less memory, two copies more in every column.",
    kind="argument",
    read_by="engine/lower/pipeline/fifos.py",
)
