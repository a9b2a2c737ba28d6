"""What a JAX function takes, given to a sweep and to a search, for all points or as an axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError

SIZES = (8, 16)


def product(rows: Any, weights: Any) -> Any:
    return jnp.tanh(rows @ weights)


def types(batch: int) -> tuple[Any, ...]:
    return tuple(jax.ShapeDtypeStruct(shape, "float32") for shape in ((batch, 32), (32, 32)))


def small() -> Any:
    return wb.target("ipu2", tiles_per_ipu=8)


def test_a_batch_is_varied_by_inputs_and_each_row_is_its_compile() -> None:
    """A cell says types and shapes, and no numbers."""
    swept = wb.sweep(product, {"inputs": [types(size) for size in SIZES]}, target=small(), progress=lambda text: None)
    assert list(swept.table["inputs"]) == [f"float32[{size},32], float32[32,32]" for size in SIZES]
    alone = [wb.profile(product, *types(size), target=small()).total_cycles for size in SIZES]
    assert list(swept.table["total_cycles"]) == alone
    assert alone[0] < alone[1]
    assert "fastest by sample with inputs=(float32[8,32], float32[32,32]): " in swept.sentence


@pytest.mark.parametrize("inputs", [types(8), [np.ones((8, 32), "float32"), np.ones((32, 32), "float32")]])
def test_inputs_of_all_points_and_options_of_each(inputs: Any) -> None:
    grid = {"target": [small(), "ipu2"], "optimizations.math.fast": [False, True]}
    swept = wb.sweep(product, grid, inputs=inputs, progress=lambda text: None)
    alone = wb.profile(product, *types(8), target=small())
    assert swept.table["total_cycles"][0] == alone.total_cycles
    assert set(swept.table["problem"]) == {""}
    assert swept.table["max_tile_bytes"][0] > swept.table["max_tile_bytes"][2]  # of eight tiles, and of 1,472


def test_points_of_equal_inputs_are_traced_once() -> None:
    traced = []

    def told(rows: Any) -> Any:
        traced.append(rows.shape)
        return rows + 1

    wb.sweep(told, {"target": [small(), "ipu2"]}, inputs=[jnp.ones(4)], progress=lambda text: None)
    assert traced == [(4,)]


def test_a_search_takes_them_too() -> None:
    pytest.importorskip("optuna")
    found = wb.search(product, {"target": ["ipu2", "bow"]}, trials=2, inputs=types(8), progress=lambda text: None)
    assert set(found.table["problem"]) == {""}
    varied = wb.search(product, {"inputs": [types(8), types(16)]}, trials=2, progress=lambda text: None)
    assert set(varied.table["problem"]) == {""}


def test_what_are_no_inputs_and_inputs_twice_are_refused() -> None:
    with pytest.raises(InputError, match=r"To mend it: write inputs=\(x,\)"):
        wb.sweep(product, {"target": ["ipu2"]}, inputs=np.ones(3))
    with pytest.raises(InputError, match="the grid varies it"):
        wb.sweep(product, {"inputs": [types(8)]}, inputs=types(8))
    with pytest.raises(InputError, match=r"was given 1 input.*wb.search take them as inputs="):
        wb.sweep(product, {"target": ["ipu2"]}, inputs=types(8)[:1])
