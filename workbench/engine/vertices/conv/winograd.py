"""Winograd 4x4/3x3 transforms of convolutions, and the two-by-two matrix product of the planner."""

from __future__ import annotations

from typing import Any

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import alike, sized, untold
from workbench.engine.vertices.popops import vector_width
from workbench.engine.vertices.sizes import whole_number

_ESTIMATION = "poplibs@7eac0f26 lib/poplin/PerformanceEstimation.hpp"
_PATCH = 16  # elements of a 4x4 patch, each a vector of channels
_KERNEL = 9
_OUTPUT = 4


def _operations(type: str, channels: int, *, data_path_bytes: int) -> int:
    return whole_number(ceil_div(channels, vector_width(type, data_path_bytes)))


def _spans(inputs: int, outputs: int) -> Any:
    """Two vectors of spans: 8 bytes of header each, 8 bytes per span."""
    return lambda **_: 16 + 8 * (inputs + outputs)


@codelet(
    "poplin::MatMul2",
    kind="worker",
    source=f"{_ESTIMATION}:1455",
    formula="5 + 3*size",
    state_bytes=lambda **_: 16,
    code_bytes=64,
    flops=lambda *, size, **_: 2 * size,
    operands=untold,
)
def mat_mul_2(*, size: int) -> int:
    """Cycles of a product of `size` pairs, bound by three loads each."""
    return 5 + 3 * size


@codelet(
    "poplin::WgdDataTransform",
    kind="worker",
    source=f"{_ESTIMATION}:1462",
    formula="13 + 56*ceil(channels/(2 float|4 half))",
    state_bytes=_spans(_PATCH, _PATCH),
    code_bytes=4 * 120,
    flops=lambda *, channels, **_: channels * 4 * (4 + 4),
)
def wgd_data_transform(*, type: str, channels: int, data_path_bytes: int) -> int:
    """Cycles to transform one 4x4 patch of `channels` channels (patches x depth)."""
    return 13 + 56 * _operations(type, channels, data_path_bytes=data_path_bytes)


@codelet(
    "poplin::WgdKernelTransform",
    kind="worker",
    source=f"{_ESTIMATION}:1467",
    formula="2 + 35*ceil(channels/(2 float|4 half))",
    state_bytes=_spans(_KERNEL, _PATCH),
    code_bytes=4 * 90,
    flops=lambda *, channels, **_: channels * 35,
)
def wgd_kernel_transform(*, type: str, channels: int, data_path_bytes: int) -> int:
    """Cycles to transform a 3x3 kernel of `channels` channels."""
    return 2 + 35 * _operations(type, channels, data_path_bytes=data_path_bytes)


@codelet(
    "poplin::WgdInverseTransform",
    kind="worker",
    source=f"{_ESTIMATION}:1473",
    formula="15 + 30*ceil(channels/(2 float|4 half))",
    state_bytes=_spans(_PATCH, _OUTPUT),
    code_bytes=4 * 90,
    flops=lambda *, channels, **_: channels * 24,
)
def wgd_inverse_transform(*, type: str, channels: int, data_path_bytes: int) -> int:
    """Cycles to transform products of `channels` channels (groups x depth) back to 2x2 outputs."""
    return 15 + 30 * _operations(type, channels, data_path_bytes=data_path_bytes)


@codelet(
    "poplin::WgdPartials",
    kind="worker",
    source=f"{_ESTIMATION}:1484",
    formula="(4 + units*weights*(2 float|4 half)/bytes per cycle + 4*workers*ceil(common/workers)) * ceil(out/units)"
    "*ceil(depth/weights)*pencils",
    state_bytes=lambda *, pencils, common, **_: 24 + 4 * pencils * common + 8 * pencils + 8 * common,
    code_bytes=4 * 80,
    flops=lambda *, pencils, common, depth, out_depth, **_: 2 * pencils * common * depth * out_depth,
)
def wgd_partials(
    *,
    type: str,
    pencils: int,
    common: int,
    depth: int,
    out_depth: int,
    conv_units: int = 16,
    weights_per_conv_unit: int = 16,
    weight_load_bytes_per_cycle: int = 8,
    workers: int,
) -> int:
    """Cycles to accumulate `pencils` input groups of `depth` channels into `common` pencils of `out_depth`."""
    sets = whole_number(ceil_div(out_depth, conv_units) * ceil_div(depth, weights_per_conv_unit)) * pencils
    loads = conv_units * weights_per_conv_unit * (2 if type == "float" else 4) // weight_load_bytes_per_cycle
    return (4 + loads + whole_number(ceil_div(common, workers)) * workers * 4) * sets


@codelet(
    "poplin::WgdReduce",
    kind="worker",
    source=f"{_ESTIMATION}:1504",
    formula="5 + ceil(elements*partials/(2 float|4 half))",
    state_bytes=lambda *, partials, **_: 16 + 4 * partials + 8,
    code_bytes=4 * 50,
    flops=lambda *, elements, partials, **_: elements * partials,
    operands=sized(lambda *, elements, partials, **_: (elements * partials,), lambda *, elements, **_: (elements,)),
)
def wgd_reduce(*, type: str, elements: int, partials: int, data_path_bytes: int) -> int:
    """Cycles to sum `partials` vectors of `elements` elements."""
    return 5 + _operations(type, elements * partials, data_path_bytes=data_path_bytes)


@codelet(
    "poplin::WgdConvComplete",
    kind="worker",
    source=f"{_ESTIMATION}:1510",
    formula="5 + elements/(2 float|4 half)",
    state_bytes=lambda **_: 12 + 8 + 4,
    code_bytes=4 * 30,
    operands=alike,
)
def wgd_conv_complete(*, type: str, elements: int, data_path_bytes: int) -> int:
    """Cycles to write `elements` results to the output layout."""
    return 5 + elements // vector_width(type, data_path_bytes)
