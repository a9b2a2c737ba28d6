"""Tiles for input and output: nothing computes on them, host copies end there and run beside compute in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.engine.passes.staged_models import BATCH, graph_of, model
from tests.engine.small_graphs import Draft
from workbench import ipu
from workbench.engine.compile import Compiled, compile_graph
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import Graph
from workbench.engine.options import options
from workbench.engine.passes.shard import shards_of
from workbench.engine.program import DoExchange, OnTileExecute, StreamCopy
from workbench.engine.target import target
from workbench.errors import InputError

COUNT, PLACE = "io_tiles.num_io_tiles", "io_tiles.place_ops_on_io_tiles"
SHARE = "io_tiles.available_memory_proportion"
TILES = 8


def small() -> Graph:
    """Add 1,024 words of input to themselves and return them."""
    draft = Draft()
    x = draft.param("x", (1024,))
    return draft.graph(draft.point("mul", x, x))


def compiled(graph: Graph, ipus: int = 1, **values: Any) -> Compiled:
    return compile_graph(graph, target("ipu2", tiles_per_ipu=TILES), options(values), ipus=ipus)


def on(count: int, *, place: bool = True, **more: Any) -> dict[str, Any]:
    return {COUNT: count, PLACE: place, **more}


def copies(result: Compiled) -> list[StreamCopy]:
    return [step for step in result.program.steps if isinstance(step, StreamCopy)]


def test_nothing_is_held_or_done_on_tiles_set_apart() -> None:
    result = compiled(small(), **on(2, place=False))
    assert result.program.target.tiles_per_ipu == TILES
    for variable in result.program.variables:
        assert variable.bytes_per_tile.shape == (TILES,)
        assert variable.bytes_per_tile[6:].tolist() == [0, 0]
    for step in result.program.steps:
        if isinstance(step, OnTileExecute):
            assert max(int(group.tiles.tiles.max()) for group in step.compute_set.groups) < 6
        assert result.trace.steps[step.id].cycles_per_tile[6:].tolist() == [0, 0]


def test_fewer_tiles_compute_for_longer() -> None:
    plain, apart = compiled(small()), compiled(small(), **on(4, place=False))
    assert apart.trace.cycle_breakdown[0]["compute"] > plain.trace.cycle_breakdown[0]["compute"]


def test_host_copies_end_on_the_tiles_and_an_exchange_goes_on() -> None:
    result = compiled(small(), **on(2))
    arriving, leaving = copies(result)
    assert arriving.exchange.received_bytes.tolist() == [0] * 6 + [2048, 2048]
    assert leaving.exchange.sent_bytes.tolist() == [0] * 6 + [2048, 2048]
    names = {one.name: one for one in result.program.variables}
    buffer = names["x/from_host/buffer"]
    assert buffer.bytes_per_tile.tolist() == [0] * 6 + [2048, 2048]
    assert buffer.always_live
    inward, outward = [step for step in result.program.steps if isinstance(step, DoExchange) and "/io" in step.name]
    assert inward.exchange.sent_bytes.tolist() == arriving.exchange.received_bytes.tolist()
    assert int(inward.exchange.received_bytes.sum()) == int(outward.exchange.sent_bytes.sum()) == 4096
    assert (inward.reads, arriving.writes) == ((buffer.id,), (buffer.id,))


def test_one_pass_has_nothing_to_run_beside() -> None:
    assert [step.hidden_cycles for step in copies(compiled(small(), **on(2)))] == [0, 0]


def micro_batches(count: int) -> Graph:
    """A training step over several micro-batches on one IPU."""
    return trace_keras(model(False), BATCH, "training", optimizer="sgd", gradient_accumulation_steps=count).graph


def test_in_a_loop_copies_run_beside_the_compute_of_other_iterations() -> None:
    """Everything else takes longer than the copies, so all of them but one iteration's are hidden."""
    count = 8
    plain, placed = (compiled(micro_batches(count), **on(2, place=place)) for place in (False, True))
    (arriving,) = [step for step in copies(placed) if step.name == "x/from_host"]
    cost = placed.trace.steps[arriving.id].cost
    whole = cost.value + arriving.hidden_cycles
    assert arriving.hidden_cycles == whole * (count - 1) // count
    assert cost.terms[-1].formula == "host.hidden"
    assert placed.trace.cycle_breakdown[0]["host"] < plain.trace.cycle_breakdown[0]["host"] / 2
    assert sum(placed.trace.cycle_breakdown[0].values()) == placed.trace.total_cycles


def test_a_copy_longer_than_the_compute_shows_what_is_left() -> None:
    slow = target("ipu2", tiles_per_ipu=TILES).replace(host_bytes_per_second=1e6)
    chosen = options(on(2))
    result = compile_graph(micro_batches(4), slow, chosen, ipus=1)
    body = result.trace.functions["micro_batch"]
    found = [step for step in copies(result) if step.name.endswith(("from_host", "to_host"))]
    hidden = sum(step.hidden_cycles for step in found)
    shown = sum(result.trace.steps[step.id].cycles for step in found)
    room = body.cycles - shown  # everything but the copies
    assert hidden <= room
    assert hidden == pytest.approx(room * 3 / 4, abs=len(found))


def test_in_a_grouped_pipeline_any_count_above_a_round_will_do() -> None:
    graph = graph_of(("b",), 7)
    with pytest.raises(InputError, match="multiple of 4"):
        compiled(graph, ipus=2)
    result = compiled(graph, ipus=2, **on(2))
    for spent in result.trace.cycle_breakdown:
        assert sum(spent.values()) == result.trace.total_cycles
    with pytest.raises(InputError, match="at least 6"):
        compiled(graph_of(("b",), 5), ipus=2, **on(2))


def test_elsewhere_overlap_is_an_error() -> None:
    with pytest.raises(InputError, match="Sequential schedule"):
        compiled(graph_of(("b",), 8), ipus=2, **on(2), **{"pipeline.schedule": "Sequential"})
    draft = Draft()
    value = draft.param("x", (64,))
    for place in (0, 1):
        with draft.at(shard=place):
            value = draft.point("neg", value)
    graph = draft.graph(value)
    with pytest.raises(InputError, match="a model over 2 shards"):
        compiled(graph, ipus=shards_of(graph), **on(2))


def test_a_tile_must_be_left() -> None:
    with pytest.raises(InputError, match="num_io_tiles is 8"):
        compiled(small(), **on(TILES))


def test_what_does_not_fit_stays_off_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="do not fit in 1277 bytes of 2 I/O tiles"):
        result = compiled(small(), **on(2, **{SHARE: 0.001}))
    assert not [step for step in result.program.steps if step.name.endswith("/io")]


def test_without_io_tiles_the_program_is_as_it_was() -> None:
    one, other = compiled(small()), compiled(small(), **on(0, place=False))
    assert str(one.program) == str(other.program)
    assert np.array_equal(one.trace.steps[0].cycles_per_tile, other.trace.steps[0].cycles_per_tile)


# Programs made by hand


def by_hand(tiles: int, *, times: int = 4) -> Any:
    """Copy 4 KB from the host, double them and copy them back, some times over, on so many of the tiles."""
    g = wb.tiles.Graph("ipu2", tiles=TILES)
    x = g.variable("x", (1024,)).map_linearly(tiles=tiles)
    double = g.compute_set("double")
    for tile in range(tiles):
        part = x[tile * 1024 // tiles : (tile + 1) * 1024 // tiles]
        double.vertex("popops::BinaryOp1DInPlace", tile=tile, op="ADD", inOut=part, b=part)
    work = [double] * 40
    return g.repeat(times, g.sequence(g.host_copy(x), *work, g.host_copy(x, "to_host")))


def configured(**values: Any) -> Any:
    config = ipu.config.IPUConfig()
    for name, value in values.items():
        setattr(config.io_tiles, name, value)
    return config


@settings(max_examples=15, deadline=None)
@given(count=st.integers(0, TILES - 1), used=st.integers(1, TILES), placed=st.booleans(), times=st.integers(1, 5))
def test_a_program_by_hand_keeps_off_the_tiles_or_is_refused(count: int, used: int, placed: bool, times: int) -> None:
    config = configured(num_io_tiles=count, place_ops_on_io_tiles=placed and count > 0)
    if used > TILES - count:
        with pytest.raises(InputError, match=f"variable 'x' lies on a tile from {TILES - count} on"):
            wb.compile(by_hand(used, times=times), config=config)
        return
    plain = wb.compile(by_hand(used, times=times)).compiled
    found = wb.compile(by_hand(used, times=times), config=config).compiled
    if not (placed and count):
        assert found.trace.total_cycles == plain.trace.total_cycles
        return
    for step in copies(found):
        ends = step.exchange.received_bytes if step.direction == "to_device" else step.exchange.sent_bytes
        assert ends[: TILES - count].sum() == 0
        assert int(ends.sum()) == step.size_bytes == 4096
    buffers = [each for each in found.program.variables if each.kind == "stream"]
    assert [int(each.bytes_per_tile[TILES - count :].sum()) for each in buffers] == [4096, 4096]
    hidden = [step.hidden_cycles for step in copies(found)]
    assert all(hidden) == (times > 1)
