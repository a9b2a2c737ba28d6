"""Options that are read change a profile in the direction their documentation says; each test names its option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import workbench as wb
from workbench.engine.options import OPTIONS
from workbench.ipu.config import IPUConfig

# Options whose effect is shown below or by the test named.
SHOWN = {
    "matmuls.poplar_options.availableMemoryProportion",
    "matmuls.poplar_options.partialsType",
    "convolutions.poplar_options.partialsType",
    "ipu_model.compile_ipu_code",
    "ipu_model.tiles_per_ipu",
    "ipu_model.version",
}


def matmul(left: Any, right: Any) -> Any:
    return left @ right


def convolution(images: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


SHAPES: dict[Callable[..., Any], tuple[tuple[int, ...], ...]] = {
    matmul: ((256, 256), (256, 256)),
    convolution: ((4, 16, 16, 64), (3, 3, 64, 64)),
}


def profile(source: Callable[..., Any], **values: Any) -> Any:
    """The profile of half-precision arrays on 16 tiles, with the configuration's options set by full name."""
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    config.from_dict({**config.to_dict(), **values})
    return wb.profile(source, *(np.zeros(shape, "float16") for shape in SHAPES[source]), config=config)


def test_the_list_names_options_that_are_read() -> None:
    assert all(OPTIONS.get(name).read_by for name in SHOWN)


def test_available_memory_proportion_lowers_the_peak() -> None:
    much, little = (
        profile(matmul, **{"matmuls.poplar_options": {"availableMemoryProportion": share}}) for share in ("0.6", "0.05")
    )
    assert little.peak.bytes < much.peak.bytes


@pytest.mark.parametrize(("source", "group"), [(matmul, "matmuls"), (convolution, "convolutions")])
def test_half_partials_take_fewer_cycles_and_bytes(source: Callable[..., Any], group: str) -> None:
    whole, half = (profile(source, **{f"{group}.poplar_options": {"partialsType": kind}}) for kind in ("float", "half"))
    assert half.total_cycles < whole.total_cycles
    assert half.peak.bytes < whole.peak.bytes


def test_without_ipu_code_memory_has_none() -> None:
    with_code, without = (profile(matmul, **{"ipu_model.compile_ipu_code": counted}) for counted in (True, False))
    assert without.max_tile_bytes < with_code.max_tile_bytes
    assert without.total_cycles == with_code.total_cycles


def test_more_tiles_hold_less_each() -> None:
    few, many = (profile(matmul, **{"ipu_model.tiles_per_ipu": tiles}) for tiles in (16, 32))
    assert many.max_tile_bytes < few.max_tile_bytes


def test_a_bow_ipu_takes_less_time() -> None:
    gc200, bow = (profile(matmul, **{"ipu_model.version": version}) for version in ("ipu2", "bow"))
    assert bow.seconds < gc200.seconds


def test_more_ipus_than_the_program_needs_are_an_error_naming_both() -> None:
    with pytest.raises(wb.InputError, match=r"selects 2 IPUs, but 1 stage on 1 replica need 1"):
        profile(matmul, auto_select_ipus=2)
