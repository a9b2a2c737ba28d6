"""No modelled option is without a test that names it; and the effects of those that no other file shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.engine.options import OPTIONS
from workbench.ipu.config import IPUConfig, SchedulingAlgorithm

TESTS = Path(__file__).parents[2]
DECLARATIONS = TESTS / "engine" / "options" / "test_options.py"  # says what is declared, not what it does


def profile(source: Any, *shapes: tuple[int, ...], tiles: int = 64, dtype: str = "float16", **values: Any) -> Any:
    """The profile on a few tiles, with the configuration's options set by full name."""
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = tiles
    config.from_dict({**config.to_dict(), **{name.replace("__", "."): value for name, value in values.items()}})
    return wb.profile(source, *(np.zeros(shape, dtype) for shape in shapes), config=config)


def convolution(images: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def product(left: Any, right: Any) -> Any:
    return left @ right


def test_every_modelled_option_is_named_by_a_test() -> None:
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py") if path != DECLARATIONS]
    modelled = [each for each in OPTIONS.values() if each.effect == "modelled" and each.kind != "dictionary"]
    assert len(modelled) > 60
    unnamed = [each.name for each in modelled if not any(each.name.rpartition(".")[2] in text for text in texts)]
    assert unnamed == []


@pytest.mark.parametrize(
    ("group", "source", "shapes"),
    [
        ("convolutions", convolution, ((1, 16, 16, 64), (3, 3, 64, 64))),
        ("matmuls", product, ((256, 256), (256, 256))),
    ],
)
def test_use_128_bit_conv_unit_load_loads_weights_in_fewer_cycles(group: str, source: Any, shapes: Any) -> None:
    narrow, wide = (
        profile(source, *shapes, **{f"{group}__poplar_options": {"use128BitConvUnitLoad": value}})
        for value in ("false", "true")
    )
    assert wide.total_cycles < narrow.total_cycles


@pytest.mark.parametrize(
    ("group", "source", "shapes"),
    [
        ("convolutions", convolution, ((1, 2, 2, 16384), (1, 1, 16384, 4))),
        ("matmuls", product, ((4, 16384), (16384, 4))),
    ],
)
def test_enable_multi_stage_reduce_needs_less_memory_for_deep_partials(group: str, source: Any, shapes: Any) -> None:
    # All 64 tiles have a partial of each of 16 sums, which are not cut: 4,096 B land on a tile, or 512 B by way of 8.
    once, stages = (
        profile(source, *shapes, **{f"{group}__poplar_options": {"enableMultiStageReduce": value}})
        for value in ("false", "true")
    )
    assert stages.max_tile_bytes < once.max_tile_bytes


def chains(x: Any, w: Any) -> Any:
    """Six values that wait for the end, and a large one that a product begins and a sum ends."""
    waiting = [jnp.cumsum(jnp.sort(x[:48] * float(number + 2), axis=1), axis=1) for number in range(6)]
    large = jnp.sort(jnp.tile(jnp.sort(x @ w, axis=0), (2, 1)), axis=0)
    total = scale = jnp.sort(large.sum(0))
    for each in waiting:
        total = jnp.sort(total + each.sum(0) * scale)
    return total


def looked_ahead(depth: int, width: int) -> int:
    """Bytes of the peak in the order found within `depth` operators, `width` orders tried."""
    return int(
        profile(
            chains,
            (64, 64),
            (64, 64),
            tiles=8,
            dtype="float32",
            scheduling__algorithm=SchedulingAlgorithm.LOOK_AHEAD.value,
            scheduling__maximum_scheduler_lookahead_depth=depth,
            scheduling__maximum_scheduler_search_space_size=width,
        ).peak.bytes
    )


def test_maximum_scheduler_search_space_size_finds_orders_with_a_lower_peak() -> None:
    assert looked_ahead(depth=3, width=64) < looked_ahead(depth=3, width=1)


def test_maximum_scheduler_lookahead_depth_finds_orders_with_a_lower_peak() -> None:
    assert looked_ahead(depth=3, width=64) < looked_ahead(depth=1, width=64)


def test_distributed_batch_norm_replica_group_size_shares_statistics_over_the_links() -> None:
    """One collective more for the forward statistics and one for their gradients; alone the norm has none."""
    found = []
    for members in (1, 2):
        model = keras.Sequential([keras.Input((8,)), keras.layers.BatchNormalization(name="norm")])
        model.compile(optimizer="sgd", loss="mse")
        config = IPUConfig()
        config.ipu_model.tiles_per_ipu = 4
        config.norms.experimental.distributed_batch_norm_replica_group_size = members
        made = wb.profile(model, mode="training", batch_size=4, replicas=2, config=config)
        steps = made.steps.query("kind == 'GlobalExchange' and layer == 'norm' and direction != 'update'")
        found.append((len(steps), made.total_cycles))
    (none, alone), (some, together) = found
    assert none == 0 < some
    assert together > alone
