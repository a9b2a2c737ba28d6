"""The schedulers' own estimate of memory: which buffers are live at each instruction of an order, and their bytes.

It counts whole buffers over all tiles, before layouts, copies and codelets are known, and serves to compare orders; the
memory of tiles is found by the allocator. Walked backwards: a buffer is live at an instruction that reads it or that
stands between its definition and a reader; a result of the whole is live at the last instruction, too.
Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/tests/hlo_poplar_liveness_test.cc:334-790.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Buffer = Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """What one instruction reads and what it makes; a result in an operand's place makes nothing.

    `called_bytes` are the peaks of all bodies it calls: branches are added up, as no one knows which will run.
    """

    reads: tuple[Buffer, ...] = ()
    makes: tuple[Buffer, ...] = ()
    called_bytes: tuple[int, ...] = ()


def live_sets(
    order: Sequence[Instruction], results: Iterable[Buffer], always: Iterable[Buffer] = ()
) -> list[frozenset[Buffer]]:
    """The buffers live at each instruction.

    `always` are parameters of a body that it overwrites or hands back to its caller: live in all of it. What nobody
    reads is never live.
    """
    kept = frozenset(always)
    live = set(results)
    found: list[frozenset[Buffer]] = []
    for place, instruction in enumerate(reversed(order)):
        if place:  # results are live where the last instruction makes them
            live.difference_update(instruction.makes)
        live.update(instruction.reads)
        found.append(frozenset(live) | kept)
        live.difference_update(instruction.makes)
    return found[::-1]


def live_bytes(live: Iterable[Buffer], sizes: Mapping[Any, int]) -> int:
    """The sizes of live buffers added up."""
    return sum(sizes[buffer] for buffer in live)


def peak_bytes(
    order: Sequence[Instruction],
    results: Iterable[Buffer],
    sizes: Mapping[Any, int],
    always: Iterable[Buffer] = (),
) -> int:
    """The most bytes live at any instruction, with the bodies it calls; found without keeping the sets."""
    kept = frozenset(always)
    live = set(results) | kept
    total, most = live_bytes(live, sizes), 0
    for place, instruction in enumerate(reversed(order)):
        if place:
            total -= _drop(live, instruction.makes, kept, sizes)
        for buffer in instruction.reads:
            if buffer not in live:
                live.add(buffer)
                total += sizes[buffer]
        most = max(most, total + sum(instruction.called_bytes))
        total -= _drop(live, instruction.makes, kept, sizes)
    return most


def _drop(live: set[Buffer], made: Iterable[Buffer], kept: frozenset[Buffer], sizes: Mapping[Any, int]) -> int:
    gone = [buffer for buffer in made if buffer in live and buffer not in kept]
    live.difference_update(gone)
    return sum(sizes[buffer] for buffer in gone)
