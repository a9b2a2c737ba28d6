"""What an exchange costs its tiles: cycles and instructions, sent as it lies or staged in contiguous buffers first.

A piece (contiguous bytes in one tile's memory) takes one send instruction at its sender and two control events, source
and address, at its receiver. Pieces are counted at both ends, so a tile has 3/2 events per piece. Tensors in many
small pieces can be gathered and scattered by copies inside the tiles instead; cycles and code are each those of the
better way, as a compiler is asked for the one or the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.cost import Cost, formula, term
from workbench.engine.program import Exchange
from workbench.engine.target import Target
from workbench.engine.vertices.sizes import Sizes, larger

STACK = "osmarks/ipu-stack@ce7c7e94"


@formula(
    "exchange.transfer",
    text="busiest tile. Directly: the largest of bytes sent / rate, bytes received / rate, and control "
    "events (events per fragment / 2 ends x pieces at this tile), because the schedule is static: data stream without "
    "headers while the tile issues one control instruction a cycle. Staged: the bytes at these rates + a call of the "
    "copy + bytes sent and received / staging rate (strided copies of words). The cheaper of the two. What both tiles "
    "of a pair receive alike comes over the bus they share, at twice the rate",
    source=f"poplibs@7eac0f26 lib/popops/ExchangeEstimator.cpp; control events, and packed staging of fragmented "
    f"exchanges: {STACK} docs/EXCHANGE_INSTRUCTION_REFERENCE.md, crates/ipu-codegen/src/cost.rs:347",
    error_kind="exchange",
)
def transfer_cycles(
    sent_bytes: int,
    received_bytes: int,
    shared_bytes: int,
    pieces: int,
    rate: int,
    bus: int,
    events_per_fragment: int,
    staging_call: int,
    staging_rate: int,
) -> int:
    """Cycles of one tile in an exchange; rates in bytes per cycle, `bus` tiles share one."""
    direct, staged = _ways(
        sent_bytes,
        received_bytes,
        shared_bytes,
        pieces,
        rate=rate,
        bus=bus,
        events_per_fragment=events_per_fragment,
        staging_call=staging_call,
        staging_rate=staging_rate,
    )
    found: int = min(direct, staged)
    return found


class Parts(NamedTuple):
    """Cycles that a tile, or every tile, spends on each part of an exchange."""

    sending: Sizes
    receiving: Sizes
    control: Sizes
    staging: Sizes


def parts(
    sent_bytes: Sizes,
    received_bytes: Sizes,
    shared_bytes: Sizes,
    pieces: Sizes,
    *,
    rate: int,
    bus: int,
    events_per_fragment: int,
    staging_call: int,
    staging_rate: int,
) -> Parts:
    """What `transfer_cycles` compares: sending, receiving and control run at once, staging comes besides."""
    return Parts(
        sending=ceil_div(sent_bytes, rate),
        receiving=ceil_div(bus * received_bytes - (bus - 1) * shared_bytes, bus * rate),
        control=ceil_div(events_per_fragment * pieces, 2),
        staging=staging_call + ceil_div(sent_bytes + received_bytes, staging_rate),
    )


def _ways(
    sent_bytes: Sizes, received_bytes: Sizes, shared_bytes: Sizes, pieces: Sizes, **rates: int
) -> tuple[Sizes, Sizes]:
    """Cycles of a tile or of every tile, direct and staged."""
    found = parts(sent_bytes, received_bytes, shared_bytes, pieces, **rates)
    streamed = larger(found.sending, found.receiving)
    return larger(streamed, found.control), streamed + found.staging


@formula(
    "exchange.latency",
    text="cycles from the first send to its arrival",
    source="40 is the middle of the least and the most that the stages named for ipu1 come to: 8 to send + 17 to the "
    "opposite side + 9 + 2 to arrive = 36, and 8 + 19 back + 9 + 7 + 2 = 45 (Saghetti0/graphcore-ipu-research "
    "ipu1_consts.c, BNET_SENDTOEXCHOUTDLY, COLBASE2OPPOSIDEDLY, OPPOSIDE2COLBASEDLY, FDLY, MMP, MINEXCHIN2LDDLY)",
    error_kind="latency",
)
def latency_cycles(latency: int) -> int:
    """A constant of the target."""
    return latency


def _rates(target: Target) -> dict[str, int]:
    return {
        "rate": target.exchange_bytes_per_cycle,
        "bus": target.tiles_per_exchange_bus,
        "events_per_fragment": target.exchange_events_per_fragment,
        "staging_call": target.memcpy_call_cycles,
        "staging_rate": target.memcpy_bytes_per_cycle // 2,
    }


def _shared(exchange: Exchange) -> Sizes:
    return 0 if exchange.shared_bytes is None else exchange.shared_bytes


def exchange_cost(exchange: Exchange, target: Target) -> tuple[Cost, IntArray]:
    """The cost of an exchange, and the cycles of each tile in it (without latency), int64[tiles]."""
    sent, received = exchange.sent_bytes, exchange.received_bytes
    ways = _ways(sent, received, _shared(exchange), exchange.fragments, **_rates(target))
    per_tile: IntArray = np.minimum(*ways)
    busiest = int(per_tile.argmax())
    transfer = term(
        "busiest tile",
        "exchange.transfer",
        sent_bytes=int(sent[busiest]),
        received_bytes=int(received[busiest]),
        shared_bytes=0 if exchange.shared_bytes is None else int(exchange.shared_bytes[busiest]),
        pieces=int(exchange.fragments[busiest]),
        **_rates(target),
    )
    latency = term("latency", "exchange.latency", latency=target.exchange_latency_cycles)
    return Cost((transfer, latency)), per_tile


def piece_instructions(target: Target) -> int:
    """Exchange instructions of a tile that takes or sends one piece of a word."""
    return ceil_div(target.exchange_events_per_fragment, 2)


def exchange_instructions(exchange: Exchange, target: Target) -> IntArray:
    """Exchange instructions of each tile, int64[tiles], sent directly or staged, whichever takes fewer.

    Directly: the events of its pieces, and a send more for every further 64 words of what it sends. Staged: a send
    per 64 words, two events per source, and two runs of a copy of three instructions each. A tile has at least as
    many sources as it takes of the busiest sender to make what it receives.
    """
    send_bytes = target.exchange_words_per_instruction * 4
    sent, received, pieces = exchange.sent_bytes, exchange.received_bytes, exchange.fragments
    sources = np.minimum(pieces, ceil_div(received, max(1, int(sent.max(initial=0)))))
    direct = ceil_div(target.exchange_events_per_fragment * pieces, 2) + sent // send_bytes
    staged = ceil_div(sent, send_bytes) + (target.exchange_events_per_fragment - 1) * sources + 6
    return np.asarray(np.minimum(direct, staged), dtype=np.int64)
