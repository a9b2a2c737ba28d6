"""Copies between host and tiles that Poplar merges: those of one direction that follow each other are one exchange.

graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/visitors/deferred_visitor.cc:1402 and 1496 keeps
copies together in a sequence for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from workbench.engine.program import Program, Sequence, StreamCopy, TileProgram, children


def followers(program: TileProgram) -> frozenset[int]:
    """Ids of the host's copies right behind another one of their IPU and direction: Poplar merges them to one."""
    found: set[int] = set()
    bodies = zip((*program.functions.values(), program.entry), program.leaves_of_bodies, strict=True)
    waiting: list[Program] = [body for body, steps in bodies if any(isinstance(step, StreamCopy) for step in steps)]
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        if isinstance(node, Sequence):
            found.update(_followers(node))
    return frozenset(found)


def _followers(sequence: Sequence) -> Iterator[int]:
    for before, after in pairwise(sequence.children):
        if not (isinstance(before, StreamCopy) and isinstance(after, StreamCopy)) or before.remote or after.remote:
            continue
        if before.ipu == after.ipu and before.direction == after.direction:
            yield after.id


__all__ = ["followers"]
