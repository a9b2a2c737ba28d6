"""The transfer between two owner mappings element by element: for pairs with about as many runs as elements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray
from workbench.engine.mapping.transfer.sweep import Counts
from workbench.engine.mapping.turned import Turned
from workbench.engine.mapping.types import Mapping, TileArray, all_distinct


def owner_to_owner(src: Mapping, dst: Mapping, tiles: int) -> Counts:
    """The transfer; each tile's memory is walked in the order of the base of its mapping."""
    have, need = src.tile_of_elements(), dst.tile_of_elements()
    local = np.bincount(have[have == need], minlength=tiles)
    pieces = _pieces(_stored(have, src), _stored(need, src), tiles) + _pieces(
        _stored(need, dst), _stored(have, dst), tiles
    )
    return Counts(
        sent=src.elements_per_tile(tiles) - local,
        received=dst.elements_per_tile(tiles) - local,
        local=local,
        pieces=pieces,
    )


def _stored(of_elements: TileArray, mapping: Mapping) -> TileArray:
    """Values of all elements, in the order in which the mapping's tiles keep them."""
    if not isinstance(mapping, Turned):
        return of_elements
    back = np.argsort(mapping.perm)
    return np.flip(of_elements.reshape(mapping.dims).transpose(back), mapping.flipped).reshape(-1)


def _pieces(owner: TileArray, other: TileArray, tiles: int) -> IntArray:
    """Pieces of each tile's memory that are on one other tile on the far side."""
    changes = np.flatnonzero(owner[1:] != owner[:-1]) + 1
    first = owner[np.append(0, changes)]
    if not all_distinct(first):
        small: npt.NDArray[np.uint16] = owner.astype(np.uint16)  # sorts by radix
        order = np.argsort(small, kind="stable")
        owner, other = owner[order], other[order]
    opens = np.append(True, (owner[1:] != owner[:-1]) | (other[1:] != other[:-1]))
    return np.bincount(owner[opens & (owner != other)], minlength=tiles)
