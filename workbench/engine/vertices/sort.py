"""popops sorting: heap sort in one worker, and the steps of the bitonic sort and top-k."""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p


def _heap_cycles(factor: int, n: int) -> int:
    levels = n.bit_length() - 1
    return factor * (19 * n * levels + 6 * n + 2)


@codelet(
    "popops::HeapSortVertex",
    kind="worker",
    source=f"{p.ESTIMATORS}:2288",
    formula="8 * (19 n floor(log2 n) + 6 n + 2), the worst case",
    state_bytes=lambda **_: p.SPAN,
    code_bytes=320,
)
def heap_sort(*, type: str, n: int) -> int:
    """Worker cycles of sorting n elements in place."""
    p.type_bytes(type)
    return _heap_cycles(8, n)


@codelet(
    "popops::HeapSortVertexKV",
    kind="worker",
    source=f"{p.ESTIMATORS}:2297",
    formula="16 * (19 n floor(log2 n) + 6 n + 2), the worst case",
    state_bytes=lambda **_: 2 * p.SPAN,
    code_bytes=420,
)
def heap_sort_key_value(*, key_type: str, value_type: str, n: int) -> int:
    """Worker cycles of sorting n keys in place with the values that go with them."""
    p.type_bytes(key_type)
    p.type_bytes(value_type)
    return _heap_cycles(16, n)


# (keys are float, values: none, carried, secondary key):
#   overhead, per worklist entry, first and further inner loop, first and further outer loop
_SWAP_CYCLES = {
    (True, "none"): (40, 17, 13, 13, 3, 13),
    (False, "none"): (42, 22, 12, 12, 3, 17),
    (True, "secondary"): (45, 30, 25, 25, 6, 24),
    (False, "secondary"): (49, 30, 27, 27, 7, 25),
    (True, "carried"): (23, 4, 8, 11, 11, 11),
    (False, "carried"): (43, 30, 17, 17, 5, 22),
}


def _swap_cycles(key_type: str, values: str, pairs: int, distance: int, change_order: int, *, workers: int) -> int:
    """Each worker has one entry of ceil(pairs / 6) pairs; every pair is swapped, the worst case."""
    overhead, entry, first_inner, inner, first_outer, outer = _SWAP_CYCLES[key_type == "float", values]
    share = ceil_div(pairs, workers)
    further_outer = ceil_div(max(0, share - distance), distance)
    changes = share // change_order
    worker = overhead + entry + first_inner + (share - 1) * inner
    worker += first_outer + further_outer * outer + 2 * changes
    return 19 + workers * worker


_SWAP_TEXT = "19 + workers * (overhead + 11 to 27 a pair + 11 to 25 per run of `distance` + 2 per change of order)"


@codelet(
    "popops::CompareAndSwapAtDistance",
    kind="multi",
    source=f"{p.ESTIMATORS}:2497",
    formula=_SWAP_TEXT,
    state_bytes=lambda *, workers, **_: p.POINTER + 4 + workers * (4 + 16) + 4,
    code_bytes=300,
)
def compare_and_swap(*, key_type: str, pairs: int, distance: int, distance_to_change_order: int, workers: int) -> int:
    """Tile cycles of one step of a bitonic sort of keys."""
    return _swap_cycles(key_type, "none", pairs, distance, distance_to_change_order, workers=workers)


@codelet(
    "popops::CompareAndSwapAtDistanceKeyVal",
    kind="multi",
    source=f"{p.ESTIMATORS}:2497",
    formula=_SWAP_TEXT,
    state_bytes=lambda *, workers, **_: 2 * p.POINTER + 4 + workers * (4 + 16) + 4,
    code_bytes=296,
)
def compare_and_swap_key_value(
    *,
    key_type: str,
    value_type: str,
    values_are_secondary_key: bool,
    pairs: int,
    distance: int,
    distance_to_change_order: int,
    workers: int,
) -> int:
    """Tile cycles of one step of a bitonic sort of keys with values."""
    p.type_bytes(value_type)
    values = "secondary" if values_are_secondary_key else "carried"
    return _swap_cycles(key_type, values, pairs, distance, distance_to_change_order, workers=workers)
