"""Remote buffers: what a replica keeps in streaming memory, and which buffers become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

LOAD, STORE = "remote_load", "remote_store"  # the nodes that bring a variable onto the chip and take it away

Merging = Literal["NO_MERGING", "MERGE", "IF_BENEFICIAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBuffer:
    """A tensor in streaming memory. `size_bytes` is what one replica keeps of it: all, or its share of `shards`.

    `variable` is the variable of the program it stands for (what is left of it on the chip). Buffers of one `group`
    are the rows of one buffer, and the code that copies a row serves them all.
    """

    variable: int
    name: str
    ipu: int
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    shards: int = 1
    group: int = 0


def merged(buffers: Sequence[RemoteBuffer], merging: Merging) -> tuple[RemoteBuffer, ...]:
    """The buffers with their groups: those of equal shape, type, share and IPU are compatible.

    Merging pays where it saves code, so `IF_BENEFICIAL` joins any two that are compatible, as `MERGE` does: every
    buffer here is copied by its own code otherwise.
    """
    groups: dict[object, int] = {}
    found = []
    for buffer in buffers:
        alike = (buffer.ipu, buffer.dtype, buffer.shape, buffer.shards)
        key: object = buffer.variable if merging == "NO_MERGING" else alike
        found.append(replace(buffer, group=groups.setdefault(key, len(groups))))
    return tuple(found)
