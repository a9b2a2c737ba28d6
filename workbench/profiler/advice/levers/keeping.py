"""What is kept on tiles, and what is computed again or fetched from streaming memory instead."""

from __future__ import annotations

from workbench.base.units import bytes_text
from workbench.profiler.advice.levers.change import Change
from workbench.profiler.advice.levers.registry import Proposal, lever
from workbench.profiler.advice.levers.situation import Situation

# A forward pass is a third of a training step: one product forward, two backward.
FORWARD = 1 / 3
LEAST = 0.005  # of a tile: what holds less is not worth a compile


@lever("recomputation", "recomputation", doubt=(0.3, 0.15))
def recomputation(situation: Situation) -> Proposal:
    """Activations computed again in the backward pass.

    Estimate: half of what waits for the backward pass goes, and the forward pass runs twice.
    """
    if not situation.can_recompute:
        return (), _no_recomputation(situation)
    change = Change(
        lever="recomputation",
        title="recomputation",
        arguments=(),
        options=(("allow_recompute", True),),
        estimated_bytes=situation.left(situation.live_bytes("activation", "stash") / 2),
        slower=1 + FORWARD,
        effect="The same operations, some of them twice.",
    )
    return (change,), ""


def _no_recomputation(situation: Situation) -> str:
    if situation.mode != "training":
        return "only training keeps activations for later"
    recomputed = situation.profile.config.get("allow_recompute")
    return "it is on already" if recomputed else "stages one after the other compute again as it is"


# A lever each: the option, the kind of variable, and how often a weight update moves all of it, for each micro-batch
# and besides. Weights are read forward and backward, and written by the update, which reads them too.
_OFFLOADS = (
    ("optimizer_state", "pipeline.offload_weight_update_variables", "optimizer", 0, 2),
    ("weights", "pipeline.offload_weights", "parameter", 2, 2),
    ("gradient_accumulation_buffers", "pipeline.offload_gradient_accumulation_buffers", "accumulator", 2, 1),
    ("activations", "pipeline.offload_activations", "stash", 2, 0),
)


def _offload(situation: Situation, name: str, option: str, kind: str, each: int, besides: int) -> Proposal:
    if situation.mode != "training":
        return (), "only training has what it moves" if kind != "parameter" else "weights are read at every call"
    if situation.profile.config.get(option):
        return (), "it is on already"
    waits = kind == "accumulator" and situation.accumulation == 1
    target = situation.profile.target
    held = situation.live_bytes(kind)
    if held < LEAST * int(target["bytes_per_tile"]) and not waits:
        return (), f"the fullest tile holds {bytes_text(held)} of it at the peak"
    moved = situation.whole_bytes("parameter" if waits else kind)
    rate = float(target.get("remote_buffer_bytes_per_second") or 0)  # what an older profile does not say costs nothing
    cycles = moved * float(target["clock_hz"]) / rate if rate else 0.0
    change = Change(
        lever=f"offload_{name}",
        title=f"{name.replace('_', ' ')} in streaming memory",
        options=((option, True),),
        estimated_bytes=situation.left(0 if waits else held),
        slower=situation.slower(cycles * (each * situation.accumulation + besides)),
        note="What it takes comes from streaming memory.",
        needs=("micro_batch",) if waits else (),
    )
    return (change,), ""


def _register(name: str, option: str, kind: str, each: int, besides: int) -> None:
    lever(f"offload_{name}", f"{name.replace('_', ' ')} in streaming memory", doubt=(0.15, 0.6))(
        lambda situation: _offload(situation, name, option, kind, each, besides)
    )


for _row in _OFFLOADS:
    _register(*_row)


@lever("sharded_state", "optimizer state in shares of the replicas", doubt=(0.1, 0.2))
def sharded_state(situation: Situation) -> Proposal:
    """Each replica keeps a share of the optimizer's state. Estimate: one part of as many stays."""
    replicas = int(situation.profile.meta["replicas"])
    if replicas < 2 or situation.mode != "training":
        return (), "there are no replicas to share it"
    if "optimizer" not in situation.kinds:
        return (), "the optimizer keeps no state"
    if situation.profile.config.get("pipeline.optimizer_state_sharding"):
        return (), "it is on already"
    change = Change(
        lever="sharded_state",
        title="optimizer state in shares of the replicas",
        options=(("pipeline.optimizer_state_sharding", True),),
        estimated_bytes=situation.left(situation.live_bytes("optimizer") * (1 - 1 / replicas)),
        slower=1.05,
        effect="The same operations, each replica updating its share.",
    )
    return (change,), ""
