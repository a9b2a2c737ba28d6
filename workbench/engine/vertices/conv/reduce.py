"""ReduceAdd: the sum of convolution partials, from one contiguous input or from a vector of pointers."""

from __future__ import annotations

from typing import Any

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.sizes import Sizes, where, whole_number

_SOURCE = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1560"


def _single_input(out_size: Sizes, partials: Sizes, *, vector: int, load: int, per_loop: int, workers: int) -> Sizes:
    loops = ceil_div(out_size // vector, workers)
    step = vector // min(vector, load)
    return workers * (20 + (step * partials + per_loop) * loops) + 33


def _many_inputs(
    out_size: Sizes, partials: Sizes, *, vector: int, load: int, per_loop: int, tail: int, workers: int
) -> Sizes:
    # Each set bit below the vector width is one more, narrower, loop.
    loops = out_size // vector
    for bit in range(vector.bit_length() - 1):
        loops = loops + (out_size >> bit) % 2
    uneven = loops % workers != 0
    odd_size = out_size % vector != 0
    short = where(uneven, where(odd_size, 2 * partials + tail, 0), 0)
    full = loops // workers + where(uneven, where(odd_size, 0, 1), 0)
    step = vector // min(vector, load) + 1
    return workers * (32 + short + (step * partials + per_loop) * full)


def reduce_add_cycles(
    *,
    out_size: Sizes,
    partials: Sizes,
    partials_type: str = "half",
    out_type: str = "half",
    single_input: Any = False,
    constrain_partials: bool = False,
    workers: int,
    data_path_bytes: int,
) -> Sizes:
    """Tile cycles of one ReduceAdd vertex: `out_size` sums of `partials` terms each.

    `single_input` (one value or one per candidate): the partials lie in one contiguous tensor (`partials` then
    counts those after the first); `constrain_partials`: they lie in interleaved memory, of which
    two accesses a cycle are loaded.
    Source: poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp:1560.
    """
    is_float = partials_type == "float"
    vector = 4 if is_float else 8
    load = data_path_bytes // (4 if is_float else 2)
    single_loop = (7 if is_float else 9) + (out_type == "float")
    many_loop = (6 if is_float else 8) + (out_type == "float")
    single = _single_input(
        out_size,
        partials,
        vector=vector,
        load=load * (1 + constrain_partials),
        per_loop=single_loop,
        workers=workers,
    )
    many = _many_inputs(
        out_size,
        partials,
        vector=vector,
        load=load,
        per_loop=many_loop,
        tail=13 if is_float else 11,
        workers=workers,
    )
    return where(single_input, single, many)


def _state(*, partials: int, single_input: bool = False, **_: Any) -> int:
    """Out, partials and two shorts; a word per partial, or the pointer of the first partial."""
    return 16 if single_input else 12 + 4 * partials


@codelet(
    "poplin::ReduceAdd",
    kind="multi",
    source=_SOURCE,
    formula="one input: 33 + workers*(20 + ceil(out/A/workers)*(A/L*partials + 8|7|10|9)); pointers: "
    "workers*(32 + loops/workers*"
    "((A/L + 1)*partials + 7|6|9|8) + tail); A = 4 float, 8 half; L = 8 bytes (16 interleaved) of elements",
    state_bytes=_state,
    code_bytes=lambda *, single_input=False, **_: 592 if single_input else 1164,
    flops=lambda *, out_size, partials, **_: out_size * (partials - 1),
)
def reduce_add(*, workers: int, data_path_bytes: int, **arguments: Any) -> int:
    """Cycles of ReduceAdd; arguments as of `reduce_add_cycles`."""
    return whole_number(reduce_add_cycles(workers=workers, data_path_bytes=data_path_bytes, **arguments))
