"""What a JAX function takes, given to a sweep and to a search, for all points or as an axis."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError
from workbench.sweeps.search import OBJECTIVES

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


SQUARE = {size: jax.ShapeDtypeStruct((size, size), "float32") for size in (4, 8)}


def squared(x: Any) -> Any:
    return x @ x


def test_a_batch_size_alone_changes_nothing_of_a_function_and_is_refused() -> None:
    with pytest.raises(InputError, match=r"whose inputs fix the batch: every point would be one program.*\(x8,\)"):
        wb.sweep(squared, {"batch_size": [4, 8]}, inputs=(SQUARE[4],), target=small())
    points = [{"inputs": (kind,), "batch_size": size} for size, kind in SQUARE.items()]
    table = wb.sweep(squared, points, target=small()).to_pandas()
    assert (table["samples_per_second"] * table["seconds"]).round(6).tolist() == [4, 8]


def test_a_batch_size_says_how_many_samples_a_call_of_a_function_has() -> None:
    unsaid, one, eight = (
        wb.profile(squared, SQUARE[4], target=small(), **given) for given in ({}, {"batch_size": 1}, {"batch_size": 8})
    )
    assert unsaid.samples_per_second == 0
    assert eight.samples_per_second == pytest.approx(8 / eight.seconds)
    assert one.samples_per_second == pytest.approx(1 / one.seconds)
    assert "samples/s" in one.summary.time
    assert "samples/s" not in unsaid.summary.time
    twice = wb.profile(squared, SQUARE[4], target=small(), batch_size=8, replicas=2)
    assert twice.samples_per_second == pytest.approx(16 / twice.seconds)


def test_a_search_for_samples_a_second_counts_calls_where_nobody_says_the_samples() -> None:
    kinds = [(SQUARE[4],), (jax.ShapeDtypeStruct((64, 64), "float32"),)]
    costs = [OBJECTIVES["samples_per_second"](wb.profile(squared, *kind, target=small())) for kind in kinds]
    assert costs[0] < costs[1] < 0


def test_what_a_builder_takes_itself_is_varied_in_a_loop() -> None:
    def build(width: int = 8) -> Any:
        return keras.Sequential([keras.Input((16,)), keras.layers.Dense(width)])

    with pytest.raises(InputError) as caught:
        wb.sweep(build, {"width": [8, 16]}, target=small())
    way = "{value: wb.profile(functools.partial(build, width=value), ...) for value in values}"
    assert caught.value.todo.endswith(way)
    names = {"wb": wb, "functools": functools, "build": build, "values": [8, 16]}
    found = eval(way.replace("...", "batch_size=4, target=wb.target('ipu2', tiles_per_ipu=8)"), names)
    assert found[8].total_cycles < found[16].total_cycles
