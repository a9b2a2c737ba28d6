"""Options of host copies change the profile in the direction their documentation says; each test names its option."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

import workbench as wb
from tests.ipu.graphs import configure, run
from workbench import ipu, tf
from workbench.engine.target import target
from workbench.ipu.config import IPUConfig

ROWS = np.zeros((256, 256), "float32")
ZEROS = np.zeros(512, "float32")


def chain(first: Any, second: Any) -> Any:
    """The second input is read when the first has long been used up."""
    return (first @ first).sum() + second.sum()


def profile(source: Any, *arrays: Any, **chosen: bool) -> Any:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    for name, value in chosen.items():
        setattr(config.optimizations, name, value)
    return wb.profile(source, *arrays, config=config)


def test_merge_infeed_io_copies_takes_less_time_and_more_memory() -> None:
    """Two inputs: one barrier with the host or two; unmerged, the second is not there while the first is used."""
    merged = profile(chain, ROWS, ROWS, merge_infeed_io_copies=True)
    each = profile(chain, ROWS, ROWS, merge_infeed_io_copies=False)
    assert each.total_cycles - merged.total_cycles == target("ipu2").global_sync_cycles
    assert each.peak.bytes < merged.peak.bytes


def test_prefetch_data_streams_spares_the_wait_for_the_host() -> None:
    """Without it the host first copies 2 x 256 KiB into its buffers."""
    ahead, late = (profile(chain, ROWS, ROWS, prefetch_data_streams=value) for value in (True, False))
    assumed = target("ipu2")
    waited = ceil(ROWS.nbytes * assumed.clock_hz / assumed.host_copy_bytes_per_second)
    assert late.total_cycles - ahead.total_cycles == 2 * waited
    assert late.peak.bytes == ahead.peak.bytes


def two_host_calls(values: Any) -> Any:
    """Two sums that the host does, of values that do not depend on each other."""
    made = []
    for factor in (2.0, 3.0):
        with ipu.scopes.outside_compilation_scope():
            made.append(tf.reduce_sum(values * factor))
    return made[0] + made[1]


def test_maximum_send_recv_cluster_size_goes_to_the_host_once() -> None:
    """16 B go there for each of two sums: within 32 B both go at once, with one barrier there and one back."""
    found = {}
    for limit_bytes in (0, 31, 32):
        configure(1, **{"optimizations.maximum_send_recv_cluster_size": limit_bytes})
        (result,), session = run(two_host_calls, np.ones(4, np.float32))
        assert result == 20
        found[limit_bytes] = session.profile.total_cycles
    assert found[0] == found[31]
    assert found[0] - found[32] == 2 * target("ipu2").global_sync_cycles


def test_prefetch_depth_of_an_infeed_queue_hides_what_the_host_fetches() -> None:
    """With room for one element of 256 KiB the host fetches while nothing is copied, which the loop then waits for.

    Eight turns: seven fetches that begin after a copy each, less seven turns, in eight shares. With room for two the
    host fetches beside the copy too, and is faster than that.
    """
    found = {}
    for depth in (1, 2, 8):
        configure()
        queue = ipu.ipu_infeed_queue.IPUInfeedQueue([ROWS] * 8, prefetch_depth=depth)
        (result,), session = run(lambda feed=queue: ipu.loops.repeat(8, lambda sum, x: sum + x[0, 0], [1.0], feed))
        assert result == 1
        found[depth] = session.profile
    assert found[2].total_cycles == found[8].total_cycles
    steps = found[2].steps.query("times == 8")
    (copied,) = steps.query("kind == 'StreamCopy'")["cycles"]
    assumed, turn = target("ipu2"), int(steps["cycles"].sum())
    fetched = ceil(ROWS.nbytes * assumed.clock_hz / assumed.host_copy_bytes_per_second)
    waited = ceil(7 * (fetched + copied - turn) / 8)
    assert waited > 0
    assert found[1].total_cycles - found[2].total_cycles == 8 * waited


def test_buffer_depth_of_an_outfeed_queue_lets_the_device_go_on() -> None:
    """The same in the other direction: room for one element is free again when the host has taken it away."""
    found = {}
    for depth in (1, 2, 3):
        configure()
        queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue(buffer_depth=depth)

        def body(rows: Any, queue: Any = queue) -> Any:
            return rows, queue.enqueue(rows)

        _, session = run(lambda rows, body=body: ipu.loops.repeat(8, body, [rows]), ROWS)
        found[depth] = session.profile
    assert found[2].total_cycles == found[3].total_cycles
    steps = found[2].steps.query("times == 8")
    (copied,) = steps.query("kind == 'StreamCopy'")["cycles"]
    assumed, turn = target("ipu2"), int(steps["cycles"].sum())
    waited = ceil(7 * (ceil(ROWS.nbytes * assumed.clock_hz / assumed.host_copy_bytes_per_second) + copied - turn) / 8)
    assert waited > 0
    assert found[1].total_cycles - found[2].total_cycles == 8 * waited


def test_optimise_latency_of_feeds_sends_fewer_packets_and_copies_once_more() -> None:
    """2 KiB on 16 tiles are 16 packets of 128 B; laid out for the host they are 2 of 1 KiB, with a header of 8 B each.

    The loop's result goes to the host as it lies either way.
    """
    found = {}
    for packed in (False, True):
        configure(1, **{"ipu_model.tiles_per_ipu": 16})
        feed = ipu.ipu_infeed_queue.IPUInfeedQueue([np.ones(512, np.float32)] * 4, optimise_latency=packed)
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue(optimise_latency=packed)

        def body(total: Any, part: Any, outfeed: Any = outfeed) -> Any:
            return total + part, outfeed.enqueue(part)

        (result,), session = run(lambda feed=feed, body=body: ipu.loops.repeat(4, body, [ZEROS], feed))
        assert result.tolist() == [4] * 512
        assert session.run(outfeed.dequeue()).shape == (4, 512)
        found[packed] = session.profile
    headers = {packed: int(each.tiles["host_exchange_packet_headers"].sum()) for packed, each in found.items()}
    assert headers == {False: (16 + 16 + 16) * 8, True: (2 + 2 + 16) * 8}
    moves = {packed: len(each.steps.query("name.str.contains('packets/exchange')")) for packed, each in found.items()}
    assert moves == {False: 0, True: 2}
    assert found[True].total_cycles > found[False].total_cycles
