"""What is offloaded leaves the chip but for its use; bytes and cycles by hand on eight tiles."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest

from tests.engine.passes.staged_models import BATCH, FEATURES, graph_of
from tests.engine.small_graphs import Draft, before_and_after
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.graph import Graph
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.options import options
from workbench.engine.passes.offload import offload
from workbench.engine.program import GlobalExchange, StreamCopy
from workbench.engine.program.remote_buffers import RemoteBuffer, merged
from workbench.engine.target import target
from workbench.errors import InputError

TILES = 8
WORDS = 2048  # 8,192 B, 1,024 on each tile
CLOCK = 1.33e9
STATE = "pipeline.offload_weight_update_variables"
WEIGHTS = "pipeline.offload_weights"
SUMS = "pipeline.offload_gradient_accumulation_buffers"
ACTIVATIONS = "pipeline.offload_activations"
SHARE_STATE = "pipeline.replicated_optimizer_state_sharding"
SHARE_WEIGHTS = "pipeline.replicated_weight_sharding"
KEEP_SHARES = "pipeline.optimizer_state_sharding"


def momentum(replicas: int = 1) -> Graph:
    """Forward w x, backward w x again, then m' = m + g, w' = w - m'; a counter of four bytes as well."""
    draft = Draft()
    w = draft.weight("layer/w", (WORDS,))
    m = draft.param("layer/m", (WORDS,), "optimizer")
    count = draft.param("count", (), "optimizer")
    x = draft.param("x", (WORDS,))
    with draft.at(layer="layer"):
        y = draft.point("mul", w, x)
    with draft.at(layer="layer", direction="backward"):
        g = draft.point("mul", w, draft.point("exp", y))
    with draft.at(layer="layer", direction="update"):
        m2 = draft.point("add", m, g)
        w2 = draft.point("sub", w, m2)
        next_count = draft.point("neg", count)
    updates = {"layer/w": w2, "layer/m": m2, "count": next_count}
    return draft.graph(y, updates=updates, mode="training", meta={"replicas": replicas} if replicas > 1 else {})


def compiled(graph: Graph, *names: str, ipus: int = 1, **values: Any) -> Compiled:
    chosen = options({**dict.fromkeys(names, True), **values})
    return compile_graph(graph, target("ipu2", tiles_per_ipu=TILES), chosen, ipus=ipus)


def on_chip(result: Compiled, name: str) -> int:
    (found,) = [each for each in result.program.variables if each.name == name]
    return found.size_bytes


def copies(result: Compiled) -> list[tuple[str, int]]:
    found = [step for step in result.program.steps if isinstance(step, StreamCopy) and step.remote]
    return [(step.name, step.size_bytes) for step in found]


def always(result: Compiled) -> int:
    return int(sum(result.liveness.always_live_bytes(ipu).sum() for ipu in range(result.program.ipus)))


def test_nothing_is_offloaded_unless_asked() -> None:
    result = compiled(momentum())
    assert copies(result) == []
    assert result.program.remote_buffers == ()


def test_optimizer_state_is_there_for_the_update_alone() -> None:
    result = compiled(momentum(), STATE)
    assert copies(result) == [("layer/m/from_remote", 4 * WORDS), ("layer/m/to_remote", 4 * WORDS)]
    assert on_chip(result, "layer/m") == 0
    assert on_chip(result, "count") == 4  # smaller than minimum_remote_tensor_size
    (buffer,) = result.program.remote_buffers
    assert (buffer.name, buffer.size_bytes, buffer.shards, buffer.ipu) == ("layer/m", 4 * WORDS, 1, 0)
    (loaded,) = [each for each in result.program.variables if each.name == "layer/m/loaded"]
    assert loaded.bytes_per_tile.tolist() == [1024] * TILES
    assert not loaded.always_live
    names = {step.id: step.name for step in result.program.steps}
    timeline = [names[step] for step in lifetimes(result.program).timelines[0]]
    (span,) = lifetimes(result.program).intervals[loaded.id]
    assert (timeline[span[0]], timeline[span[1]]) == ("layer/m/from_remote", "layer/m/to_remote")


def test_time_is_that_of_the_copies() -> None:
    result, plain = compiled(momentum(), STATE), compiled(momentum())
    steps = {step.name: result.trace.steps[step.id] for step in result.program.steps}
    streamed = ceil(4 * WORDS * CLOCK / 8e9)
    assert steps["layer/m/from_remote"].cycles == streamed + 1024 // 4 + 40  # and the tile's own part
    assert steps["layer/m/from_remote"].cost.terms[0].formula == "remote.transfer"
    more = result.trace.total_cycles - plain.trace.total_cycles
    assert more == 2 * (streamed + 256 + 40) + 2 * 600


@pytest.mark.parametrize("names", [(STATE,), (WEIGHTS,), (STATE, WEIGHTS)])
def test_memory_falls_and_time_rises(names: tuple[str, ...]) -> None:
    result, plain = compiled(momentum(), *names), compiled(momentum())
    gone = 4 * WORDS * len(names)
    code = int(result.footprint.bytes_per_tile(0).sum() - plain.footprint.bytes_per_tile(0).sum())
    assert always(plain) - always(result) == gone - code
    assert result.trace.total_cycles > plain.trace.total_cycles


def test_weights_come_for_forward_and_again_for_backward_and_go_once() -> None:
    result = compiled(momentum(), WEIGHTS)
    found = Counter(name for name, _ in copies(result))
    assert found == {"layer/w/from_remote": 2, "layer/w/to_remote": 1}
    loaded = [each.size_bytes for each in result.program.variables if each.name == "layer/w/loaded"]
    assert loaded == [4 * WORDS] * 2


def test_replicas_keep_a_share_and_gather_it() -> None:
    result = compiled(momentum(4), STATE, SHARE_STATE)
    assert copies(result) == [("layer/m/from_remote", WORDS), ("layer/m/to_remote", WORDS)]
    (gather,) = [step for step in result.program.steps if isinstance(step, GlobalExchange)]
    assert (gather.collective, gather.group_size, gather.size_bytes) == ("all_gather", 4, 4 * WORDS)
    assert gather.sent is not None
    assert gather.sent.sent_bytes.tolist() == [768] * TILES
    assert [(buffer.ipu, buffer.size_bytes) for buffer in result.program.remote_buffers] == [(0, WORDS)]


def test_sharded_weights_stay_on_the_chip_in_shares() -> None:
    result = compiled(momentum(4), SHARE_WEIGHTS)
    assert on_chip(result, "layer/w") == WORDS  # a quarter of 8,192 B
    assert copies(result) == []
    assert result.program.remote_buffers == ()
    gathers = [step for step in result.program.steps if isinstance(step, GlobalExchange)]
    assert [step.name for step in gathers] == ["layer/w/all_gather"] * 2
    assert [step.name for step in result.program.steps if "own_share" in step.name] == ["layer/w/own_share"]


def test_state_stays_on_the_chip_in_shares() -> None:
    """A quarter of 8,192 B each; gathered before the update, of which every replica keeps its own share."""
    result = compiled(momentum(4), KEEP_SHARES)
    assert on_chip(result, "layer/m") == WORDS
    assert on_chip(result, "layer/w") == 4 * WORDS
    assert result.program.remote_buffers == ()
    (gather,) = [step for step in result.program.steps if isinstance(step, GlobalExchange)]
    assert (gather.name, gather.size_bytes) == ("layer/m/all_gather", 4 * WORDS)
    assert [step.name for step in result.program.steps if "own_share" in step.name] == ["layer/m/own_share"]


def test_sharding_without_replicas_changes_nothing() -> None:
    result = compiled(momentum(), SHARE_STATE, SHARE_WEIGHTS, KEEP_SHARES)
    assert on_chip(result, "layer/w") == on_chip(result, "layer/m") == 4 * WORDS
    assert copies(result) == []


def test_offloaded_weights_of_replicas_are_shares() -> None:
    result = compiled(momentum(4), WEIGHTS)
    assert [(buffer.ipu, buffer.size_bytes) for buffer in result.program.remote_buffers] == [(0, WORDS)]


@pytest.mark.parametrize(("least_bytes", "offloaded"), [(128, 1), (4 * WORDS, 1), (4 * WORDS + 1, 0), (0, 2)])
def test_small_tensors_stay(least_bytes: int, offloaded: int) -> None:
    result = compiled(momentum(), STATE, **{"optimizations.minimum_remote_tensor_size": least_bytes})
    assert len(result.program.remote_buffers) == offloaded


def test_a_system_that_is_not_there_must_be_said_to_have_remote_buffers() -> None:
    absent = {"device_connection.type": "ON_DEMAND"}
    with pytest.raises(InputError, match=r"device_connection\.type is ON_DEMAND"):
        compiled(momentum(), STATE, **absent)
    assert compiled(momentum(), **absent).program.remote_buffers == ()
    assert compiled(momentum(), STATE, "device_connection.enable_remote_buffers", **absent).program.remote_buffers


# -- pipelines


CUTS, STEPS = ("b",), 4


def staged(*names: str, **values: Any) -> Compiled:
    return compiled(graph_of(CUTS, STEPS), *names, ipus=2, **values)


def executed(result: Compiled) -> Counter[str]:
    """Executions of the copies from and to streaming memory, by what they end with."""
    found: Counter[str] = Counter()
    for step in result.program.steps:
        if isinstance(step, StreamCopy) and step.remote:
            found[step.name.rpartition("/")[2]] += result.trace.executions[step.id]
    return found


def test_sums_of_gradients_come_and_go_with_every_micro_batch() -> None:
    result = staged(SUMS)
    sums = [buffer for buffer in result.program.remote_buffers if buffer.name.endswith("/accumulator")]
    assert len(sums) == len(result.program.remote_buffers) > 0
    each = len(sums) * (STEPS + 1)  # every micro-batch, and the update, which leaves zeros
    assert executed(result) == {"from_remote": each, "to_remote": each}
    assert always(result) < always(staged())


def test_stashes_are_rows_in_streaming_memory() -> None:
    result, plain = staged(ACTIVATIONS), staged()
    left = {each.name: each.size_bytes for each in plain.program.variables if each.name.endswith("/unstashed")}
    slots = 2  # of the first of two stages; what the last keeps for one column has no slots
    expected = {name.replace("/unstashed", "/stash"): slots * size for name, size in left.items() if size >= 128}
    assert {buffer.name: buffer.size_bytes for buffer in result.program.remote_buffers} == expected
    assert expected["x/stash"] == slots * 4 * BATCH * FEATURES
    assert result.trace.total_cycles > plain.trace.total_cycles
    assert executed(result)["from_remote"] == executed(result)["to_remote"] > 0


@pytest.mark.parametrize("names", [(STATE, SUMS), (WEIGHTS, STATE, SUMS, ACTIVATIONS)])
def test_every_idle_cycle_still_has_a_cause(names: tuple[str, ...]) -> None:
    result = staged(*names)
    for spent in result.trace.cycle_breakdown:
        assert sum(spent.values()) == result.trace.total_cycles


# -- merging


def buffer(variable: int, shape: tuple[int, ...], ipu: int = 0) -> RemoteBuffer:
    return RemoteBuffer(variable=variable, name="b", ipu=ipu, dtype="float32", shape=shape, size_bytes=4)


def test_compatible_buffers_are_merged() -> None:
    found = [buffer(3, (8,)), buffer(5, (8,)), buffer(7, (9,)), buffer(8, (8,), ipu=1)]
    assert [each.group for each in merged(found, "MERGE")] == [0, 0, 1, 2]
    assert [each.group for each in merged(found, "IF_BENEFICIAL")] == [0, 0, 1, 2]
    assert [each.group for each in merged(found, "NO_MERGING")] == [0, 1, 2, 3]


def test_merged_buffers_share_their_code() -> None:
    name = "optimizations.merge_remote_buffers"
    codes = [
        int(staged(SUMS, **{name: merging}).footprint.categories["host_exchange_code"].sum())
        for merging in ("MERGE", "NO_MERGING")
    ]
    assert codes[0] < codes[1]


def test_text(golden: Any) -> None:
    before = momentum()
    after = offload(before, options({STATE: True, WEIGHTS: True}))
    golden("passes/offload.txt", before_and_after(before, after))
