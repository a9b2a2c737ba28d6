"""A transfer counted by a walk over single elements, which every faster method must agree with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping import Grid, Mapping, Placement, Turned, transfer
from workbench.engine.mapping.axes import in_memory_order
from workbench.engine.mapping.transfer.methods import pairs_of_parts
from workbench.engine.mapping.types import TileArray


def check_transfer(src: Mapping, dst: Placement, itemsize: int, tiles: int) -> None:
    """Compare `transfer` with a count over single elements, which takes tiles × size memory.

    The reconciliation: Σ over elements of (receivers other than the owner) × itemsize == Σ received_bytes, and
    an element is sent once if it has any such receiver. Fragments are left out for turned views, whose memory is in
    another order.
    """
    owner, needs = src.tile_of_elements(), _needs(dst, tiles)
    holds = owner[None, :] == np.arange(tiles)[:, None]
    remote = needs & ~holds
    senders = remote.any(axis=0)
    moved = transfer(src, dst, itemsize, tiles)
    expected = {
        "sent_bytes": np.bincount(owner[senders], minlength=tiles) * itemsize,
        "received_bytes": remote.sum(axis=1) * itemsize,
        "local_bytes": (needs & holds).sum(axis=1) * itemsize,
    }
    pairs: Sequence[tuple[Mapping, Placement]] = pairs_of_parts(src, dst) or [(src, dst)]
    if not any(isinstance(one, Turned) for pair in pairs for one in pair):
        expected["fragments"] = np.sum([_pieces(*_in_order(have, need, tiles), tiles) for have, need in pairs], axis=0)
    for name, right in expected.items():
        found = getattr(moved, name)
        assert np.array_equal(found, right), f"{name} of {src} to {dst} is {found!r}, expected {right!r}"
    assert moved.total_bytes == int(remote.sum()) * itemsize


def _needs(dst: Placement, tiles: int) -> npt.NDArray[np.bool_]:
    needs = np.zeros((tiles, dst.size), dtype=bool)
    for tile, lo, hi in zip(*dst.intervals(), strict=True):
        needs[tile, lo:hi] = True
    return needs


def _in_order(src: Mapping, dst: Placement, tiles: int) -> tuple[TileArray, npt.NDArray[np.bool_]]:
    """Owners and needs of the elements in the order in which tiles keep them."""
    ordered = in_memory_order(src, dst) if isinstance(src, Grid) and isinstance(dst, Grid) else None
    have, need = ordered or (src, dst)
    return have.tile_of_elements(), _needs(need, tiles)


def _pieces(owner: TileArray, needs: npt.NDArray[np.bool_], tiles: int) -> IntArray:
    """Pieces received and sent by each tile, walking its own memory in order."""
    count = np.zeros(tiles, dtype=np.int64)
    for tile in range(tiles):
        sources = owner[needs[tile]].tolist()
        count[tile] += sum(a != tile and (i == 0 or sources[i - 1] != a) for i, a in enumerate(sources))
        receivers = [tuple(np.flatnonzero(needs[:, at]).tolist()) for at in np.flatnonzero(owner == tile)]
        count[tile] += sum(
            bool(a) and a != (tile,) and (i == 0 or receivers[i - 1] != a) for i, a in enumerate(receivers)
        )
    return count
