"""Options of rewriting change the profile in the direction their documentation says; each test names its option."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.ipu.config import IPUConfig


def config_of(name: str, value: Any) -> IPUConfig:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    holder: Any = config
    *path, last = name.split(".")
    for part in path:
        holder = getattr(holder, part)
    setattr(holder, last, value)
    return config


def both(name: str, source: Any, *arrays: Any) -> tuple[Any, Any]:
    """The profiles with the option off and on."""
    off, on = (wb.profile(source, *arrays, config=config_of(name, value)) for value in (False, True))
    return off, on


def matvec(matrix: Any, vector: Any) -> Any:
    return matrix @ vector


def shares(rows: Any) -> Any:
    return rows / rows.sum(-1, keepdims=True)


def entry(table: Any, place: Any) -> Any:
    return jax.lax.dynamic_index_in_dim(table, place, 0)


def new_entry(table: Any, place: Any, row: Any) -> Any:
    return jax.lax.dynamic_update_index_in_dim(table, row, place, 0)


def lookup(table: Any, places: Any) -> Any:
    return table[places]


def names(found: Any) -> set[str]:
    return {str(row.op) for row in found.operators.itertuples()}


def test_math_dot_strength_does_without_the_matrix_unit() -> None:
    off, on = both("optimizations.math.dot_strength", matvec, np.zeros((64, 64), "float32"), np.zeros(64, "float32"))
    assert "matmul" in names(off)
    assert "matmul" not in names(on)
    assert on.total_cycles != off.total_cycles


def test_math_fast_divides_less() -> None:
    off, on = both("optimizations.math.fast", shares, np.zeros((256, 64), "float32"))
    assert on.total_cycles < off.total_cycles


def test_enable_dynamic_slice_replacement_spreads_tall_tables_over_tiles() -> None:
    """4096 rows of 4 columns: unplanned, four tiles hold a column each; planned, every tile holds rows."""
    name, table = "optimizations.enable_dynamic_slice_replacement", np.zeros((4096, 4), "float32")
    off, on = both(name, entry, table, np.int32(0))
    assert on.peak.bytes < off.peak.bytes
    assert on.total_cycles < off.total_cycles
    off, on = both(name, new_entry, table, np.int32(0), np.zeros(4, "float32"))
    assert on.peak.bytes < off.peak.bytes


def test_enable_gather_simplifier_plans_look_ups() -> None:
    """512 rows of 8 columns on 16 tiles: without a plan 8 tiles look all 256 indices up."""
    off, on = both(
        "optimizations.enable_gather_simplifier", lookup, np.zeros((512, 8), "float32"), np.zeros(256, "int32")
    )
    assert on.total_cycles < off.total_cycles
    (plan,) = [row.plan for row in off.operators.itertuples() if row.op == "gather"]
    assert plan == "rows in 1, columns in 8, indices in 1 parts"


@pytest.mark.parametrize("kind", ["BatchNormalization", "LayerNormalization", "GroupNormalization"])
def test_norms_use_stable_statistics_is_slower(kind: str) -> None:
    made = []
    for stable in (False, True):
        given = keras.Input((8, 8, 16), batch_size=2)
        layer = getattr(keras.layers, kind)(**({"groups": 4} if kind == "GroupNormalization" else {}))
        model = keras.Model(given, layer(given))
        config = config_of("norms.use_stable_statistics", stable)
        made.append(wb.profile(model, mode="training", loss="mse", optimizer="sgd", config=config))
    fast, stable_ = made
    assert stable_.total_cycles > fast.total_cycles
