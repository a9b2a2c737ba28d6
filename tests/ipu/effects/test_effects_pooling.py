"""Options of pooling change the profile in the direction their documentation says; each test names its option."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import workbench as wb
from workbench.ipu.config import IPUConfig


def pooled_twice(images: Any) -> Any:
    """The second pooling finds its operand where the first left it."""
    once = jax.lax.reduce_window(images, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
    return jax.lax.reduce_window(once, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")


def profile(source: Any, *arrays: Any, **keys: str) -> Any:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    config.pooling.poplar_options = keys
    return wb.profile(source, *arrays, config=config)


def received(found: Any) -> int:
    return int(found.steps[found.steps["kind"] == "DoExchange"]["bytes_received"].sum())


def test_pool_use_introspective_mapping_moves_less() -> None:
    images = np.zeros((4, 16, 16, 32), "float32")
    follow, linear = (profile(pooled_twice, images, poolUseIntrospectiveMapping=value) for value in ("true", "false"))
    assert received(follow) < received(linear)
    assert follow.total_cycles < linear.total_cycles


def averaged(images: Any) -> Any:
    return jax.lax.reduce_window(images, np.float16(0), jax.lax.add, (1, 8, 8, 1), (1, 1, 1, 1), "VALID") / 64


def test_optimize_for_speed_convolves_where_that_is_faster() -> None:
    """Sums over 8 x 8 windows of halves: multiplying vectors, every channel by itself, takes fewer cycles."""
    images = np.zeros((8, 8, 8, 64), "float16")
    pooled, convolved = (profile(averaged, images, optimizeForSpeed=value) for value in ("false", "true"))
    assert convolved.total_cycles < pooled.total_cycles
    (row,) = [row for row in convolved.operators.itertuples() if row.op == "reduce_window_sum"]
    assert row.plan.startswith("vmac")
    assert f"; {row.plan_cycles} cycles" in row.plan


def test_optimize_for_speed_leaves_maxima_and_what_pools_faster() -> None:
    for source, shape in ((pooled_twice, (4, 16, 16, 32)), (averaged, (1, 8, 8, 4))):
        both = [profile(source, np.zeros(shape, "float16"), optimizeForSpeed=value) for value in ("false", "true")]
        assert both[0].total_cycles >= both[1].total_cycles
    images = np.zeros((4, 16, 16, 32), "float32")
    pooled, same = (profile(pooled_twice, images, optimizeForSpeed=value) for value in ("false", "true"))
    assert pooled.total_cycles == same.total_cycles
