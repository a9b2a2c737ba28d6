"""popops dynamic slices and updates, and gathers and scatters by a list of indices.

`region_size` elements lie together; `num_sub_elements` of `num_base_elements` positions are sliced. Multi-slices
take `offsets` indices, all of them in range unless `offsets_in_range` says fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import Rule, sized, untold
from workbench.errors import InputError

INDICES = ("int", "unsigned int")  # types of offsets
_ATOMIC_STORE_BYTES = 4
_INT64 = ("long long", "unsigned long long")


def _slice_vector(dtype: str, data_path_bytes: int) -> int:
    """Elements of a load; bytes are copied two to a lane of two."""
    return data_path_bytes // min(max(p.type_bytes(dtype), 2), 4)


def _dynamic_1d(dtype: str, region_size: int, num_sub_elements: int, *, workers: int, data_path_bytes: int) -> int:
    words = region_size * (2 if dtype in _INT64 else 1)
    copies = ceil_div(words, workers) // _slice_vector(dtype, data_path_bytes)
    start, each = (76, 72) if p.type_bytes(dtype) == 1 else (39, 24)
    return 14 + p.multi(start + (each + 2 * copies) * num_sub_elements, workers)


def _base_1d(*, region_size: int, num_base_elements: int, **_: object) -> tuple[int, ...]:
    """Elements of what is sliced, and of the offset."""
    return region_size * num_base_elements, 1


def _taken_1d(*, region_size: int, num_sub_elements: int, **_: object) -> tuple[int, ...]:
    return (region_size * num_sub_elements,)


_DYNAMIC_1D_TEXT = (
    "25 + workers * (39 + positions * (24 + 2 a vector of the data path)); 8 bits: 76 and 72, half a vector"
)


@codelet(
    "popops::DynamicSlice1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:1755",
    formula=_DYNAMIC_1D_TEXT,
    state_bytes=lambda **_: 3 * p.POINTER + 12,
    code_bytes=672,
    operands=sized(_base_1d, _taken_1d),
    also_types=INDICES,
)
def dynamic_slice_1d(
    *, type: str, region_size: int, num_sub_elements: int, num_base_elements: int, workers: int, data_path_bytes: int
) -> int:
    """Tile cycles of copying consecutive positions of the base out."""
    return _dynamic_1d(type, region_size, num_sub_elements, workers=workers, data_path_bytes=data_path_bytes)


@codelet(
    "popops::DynamicUpdateSlice1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:2121",
    formula=_DYNAMIC_1D_TEXT,
    state_bytes=lambda **_: 3 * p.POINTER + 12,
    code_bytes=672,
    operands=sized(lambda **sizes: (*_base_1d(**sizes), *_taken_1d(**sizes)), lambda **sizes: _base_1d(**sizes)[:1]),
    also_types=INDICES,
)
def dynamic_update_slice_1d(
    *, type: str, region_size: int, num_sub_elements: int, num_base_elements: int, workers: int, data_path_bytes: int
) -> int:
    """Tile cycles of copying consecutive positions into the base."""
    return _dynamic_1d(type, region_size, num_sub_elements, workers=workers, data_path_bytes=data_path_bytes)


def _dynamic_2d(
    dtype: str, regions: Sequence[int], num_sub_elements: int, is_update: bool, *, data_path_bytes: int
) -> int:
    wide = int(is_update and dtype in _INT64)
    start, per_vector = (29 + wide, 1)
    if dtype == "half":
        start, per_vector = 31, 2
    if p.type_bytes(dtype) == 1:
        start, per_vector = 50, 23 if is_update else 2
    vector = _slice_vector(dtype, data_path_bytes)
    each = (start + per_vector * ceil_div(size * (1 + wide), vector) for size in regions)
    return 27 + sum(cycles * num_sub_elements + 13 for cycles in each)


def _dynamic_2d_state(*, type: str, region_sizes: Sequence[int], num_sub_elements: int, num_base_elements: int) -> int:
    rows = len(region_sizes) * (num_sub_elements + num_base_elements)
    return p.POINTER + 2 * p.VECTOR_LIST + 8 + 4 * rows


_DYNAMIC_2D_TEXT = "27 + per region: 13 + positions * (29 + vectors; half 31 + 2 a vector; 8 bits 50 + 2)"


def _base_2d(*, region_sizes: Sequence[int], **sizes: int) -> tuple[int, ...]:
    return _base_1d(region_size=sum(region_sizes), **sizes)


def _taken_2d(*, region_sizes: Sequence[int], **sizes: int) -> tuple[int, ...]:
    return _taken_1d(region_size=sum(region_sizes), **sizes)


@codelet(
    "popops::DynamicSlice2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:2032",
    formula=_DYNAMIC_2D_TEXT,
    state_bytes=_dynamic_2d_state,
    code_bytes=692,
    operands=sized(_base_2d, _taken_2d),
    also_types=INDICES,
)
def dynamic_slice_2d(
    *, type: str, region_sizes: Sequence[int], num_sub_elements: int, num_base_elements: int, data_path_bytes: int
) -> int:
    """Worker cycles of slicing several regions at one offset."""
    return _dynamic_2d(type, region_sizes, num_sub_elements, is_update=False, data_path_bytes=data_path_bytes)


@codelet(
    "popops::DynamicUpdateSlice2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:2066",
    formula=f"{_DYNAMIC_2D_TEXT}, 8 bits 50 + 23 a vector",
    state_bytes=_dynamic_2d_state,
    code_bytes=692,
    operands=sized(lambda **sizes: (*_base_2d(**sizes), *_taken_2d(**sizes)), lambda **sizes: _base_2d(**sizes)[:1]),
    also_types=INDICES,
)
def dynamic_update_slice_2d(
    *, type: str, region_sizes: Sequence[int], num_sub_elements: int, num_base_elements: int, data_path_bytes: int
) -> int:
    """Worker cycles of updating several regions at one offset."""
    return _dynamic_2d(type, region_sizes, num_sub_elements, is_update=True, data_path_bytes=data_path_bytes)


def _search_cycles(offsets: int, offsets_per_entry: int) -> int:
    """Two binary searches of sorted indices, then the repeated entries."""
    return 2 * p.ceil_log2(offsets) * 10 + offsets_per_entry * 15 + 9


def _multi_slice(
    dtype: str, region_size: int, offsets: int, in_range: int, search: int, start: int, *, workers: int
) -> int:
    vector, per_vector = {1: (4, 3), 2: (2, 2), 4: (2, 2), 8: (1, 2)}[p.type_bytes(dtype)]
    vectors = ceil_div(region_size, vector)
    skipped = 0 if search else 8 * (offsets - in_range)
    return workers * (start + search + in_range * (19 + vectors * per_vector) + skipped)


_MULTI_SLICE_TEXT = (
    "in range * (19 + 2 a vector of 2; 8 bits 3 a vector of 4) + 8 * out of range; sorted or of one region that the "
    "workers share: none out of range, but 20 * ceil(log2 offsets) + 29)"
)


def _multi_slice_codelet(name: str, start: int, line: int, operands: Rule) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATION}:49, {p.ESTIMATORS}:{line}",
        formula=f"workers * ({start} + {_MULTI_SLICE_TEXT}",
        state_bytes=lambda **_: p.SPAN + 2 * p.POINTER + 16,
        code_bytes=520,
        operands=operands,
        also_types=INDICES,
    )
    def multi_slice_cycles(
        *,
        type: str,
        region_size: int,
        offsets: int,
        split_single_region: bool = False,
        offsets_in_range: int | None = None,
        indices_are_sorted: bool = False,
        offsets_per_entry: int = 0,
        workers: int,
    ) -> int:
        """Tile cycles of copying one region per index."""
        in_range = offsets if offsets_in_range is None else offsets_in_range
        # The vertex's estimator hands `split_single_region` on in the place of `indices_are_sorted`, so a region
        # that the workers share costs a search of the indices and is not divided by the workers.
        searched = indices_are_sorted or split_single_region
        search = 20 + _search_cycles(offsets, offsets_per_entry) if searched else 0
        return _multi_slice(type, region_size, offsets, in_range, search, start, workers=workers)


_of_indices = sized(untold, lambda *, region_size, offsets, **_: (region_size * offsets,))
_multi_slice_codelet("popops::MultiSlice", 30, 2141, _of_indices)
_multi_slice_codelet("popops::MultiUpdate", 29, 2146, untold)


def _update_cycles_per_index(
    dtype: str, region_size: int, sub_word: bool, scaled: bool, adds: bool, wider_scale: bool
) -> int:
    """Cycles of one index in range: the assembly's atoms, its one- and two-vector paths, or element by element."""
    word = p.type_bytes(dtype) == 4
    entry = 11 if word else 12 + scaled
    if sub_word:
        return entry + region_size * 20
    if _is_short_path(dtype, region_size, scaled and adds):
        return (8 if region_size == 2 else 16) if word else (12 if wider_scale else 9)
    atom = lcm(_ATOMIC_STORE_BYTES, p.type_bytes(dtype)) // p.type_bytes(dtype)
    if region_size % atom:
        raise InputError(
            f"region_size={region_size!r} of {dtype!r} ends inside a {_ATOMIC_STORE_BYTES}-byte word",
            expected="sub_word_writes_required=True",
        )
    return entry + (region_size // atom - 1) * (3 + wider_scale)


def _is_short_path(dtype: str, region_size: int, scaled_add: bool) -> bool:
    short = {4: (2, 4), 2: (4,)}.get(p.type_bytes(dtype), ())
    return scaled_add and region_size in short


def _multi_update_op(
    dtype: str,
    scale_type: str,
    sub_word: bool,
    op: str,
    region_size: int,
    offsets: int,
    in_range: int,
    search: int,
    *,
    workers: int,
) -> int:
    """An empty `scale_type` is the unscaled vertex."""
    scaled, adds = scale_type != "", op == "ADD"
    wider_scale = scaled and dtype == "half" and scale_type != dtype
    word = p.type_bytes(dtype) == 4
    start = 3 + (29 if word else 30) + ((6 if word else 4) if scaled else 0) + search
    if _is_short_path(dtype, region_size, scaled and adds):
        start -= 1
    if offsets == 0:
        return start
    each = _update_cycles_per_index(dtype, region_size, sub_word, scaled, adds, wider_scale)
    return workers * (start + each * in_range + (0 if search else 5 * (offsets - in_range)))


_MULTI_UPDATE_TEXT = (
    "workers * (32 (33 half) + 4 to 6 if scaled + in range * (11 or 12 + 3 per further 4-byte word; 64-bit rows "
    "8, 128-bit "
    "16; sub-word writes 20 an element) + 5 * out of range + search if sorted)"
)


@codelet(
    "popops::MultiUpdateOp",
    kind="multi",
    source=f"{p.ESTIMATION}:124, {p.ESTIMATORS}:2174",
    formula=_MULTI_UPDATE_TEXT,
    state_bytes=lambda **_: p.SPAN + 2 * p.POINTER + 16,
    code_bytes=500,
    flops=lambda *, type, region_size, offsets, **_: region_size * offsets if p.is_float(type) else 0,
    also_types=INDICES,
)
def multi_update_op(
    *,
    type: str,
    op: str,
    region_size: int,
    offsets: int,
    sub_word_writes_required: bool = False,
    offsets_in_range: int | None = None,
    indices_are_sorted: bool = False,
    offsets_per_entry: int = 0,
    workers: int,
) -> int:
    """Tile cycles of `base[index] = op(base[index], sub)` per index; `op` is ADD, MAX or MUL."""
    search = 15 + _search_cycles(offsets, offsets_per_entry) if indices_are_sorted else 0
    in_range = offsets if offsets_in_range is None else offsets_in_range
    return _multi_update_op(
        type, "", sub_word_writes_required, op, region_size, offsets, in_range, search, workers=workers
    )


def _scaled_update_codelet(name: str, note: str) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATION}:124, {p.ESTIMATORS}:2151{note}",
        formula=_MULTI_UPDATE_TEXT,
        state_bytes=lambda **_: p.SPAN + 3 * p.POINTER + 16,
        code_bytes=1056,
        flops=lambda *, type, region_size, offsets, **_: 2 * region_size * offsets if p.is_float(type) else 0,
        also_types=INDICES,
    )
    def scaled_update_cycles(
        *,
        type: str,
        scale_type: str,
        region_size: int,
        offsets: int,
        sub_word_writes_required: bool = False,
        op: str = "ADD",
        offsets_in_range: int | None = None,
        indices_are_sorted: bool = False,
        offsets_per_entry: int = 0,
        workers: int,
    ) -> int:
        """Tile cycles of `base[index] += scale * sub` per index."""
        search = 15 + _search_cycles(offsets, offsets_per_entry) if indices_are_sorted else 0
        in_range = offsets if offsets_in_range is None else offsets_in_range
        return _multi_update_op(
            type, scale_type, sub_word_writes_required, op, region_size, offsets, in_range, search, workers=workers
        )


_scaled_update_codelet("popops::ScaledMultiUpdateOp", "")
_scaled_update_codelet("popops::MultiUpdateAdd", " (its name before the operation became a parameter)")


@codelet(
    "popops::SequenceSlice",
    kind="supervisor",
    source=f"{p.ESTIMATORS}:2195",
    formula="60 + sequences * 60 + workers * ceil(sequences / workers) * 2 cycles per 4 bytes of a sequence; 40 "
    "if none",
    state_bytes=lambda **_: p.SPAN + 5 * p.POINTER + 20,
    code_bytes=480,
    operands=untold,
    also_types=INDICES,
)
def sequence_slice(*, type: str, region_size: int, elements: int, sequences: int, workers: int) -> int:
    """Tile cycles of copying `elements` regions of `region_size` that belong to `sequences`."""
    if sequences == 0:
        return 40
    copied = elements * region_size * p.type_bytes(type) // 4 * 2
    one_worker = (copied + sequences - 1) // sequences
    return 60 + one_worker * workers * ceil_div(sequences, workers) + 60 * sequences
