"""Options that combine operators change the profile as documented; each test names its option."""

from __future__ import annotations

from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine.sharding import ipu_shard
from workbench.ipu.config import IPUConfig


def config_of(**chosen: Any) -> IPUConfig:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    for name, value in chosen.items():
        setattr(config.optimizations, name, value)
    return config


def profile(source: Any, *arrays: Any, replicas: int = 1, **chosen: Any) -> Any:
    return wb.profile(source, *arrays, config=config_of(**chosen), replicas=replicas)


def count(found: Any, op: str) -> int:
    return sum(row.op == op for row in found.operators.itertuples())


def two_lookups(table: Any, first: Any, second: Any) -> Any:
    return table[first], table[second]


def two_products(rows: Any, first: Any, second: Any) -> Any:
    return rows @ first, rows @ second


def one_kernel(first: Any, second: Any, kernel: Any) -> Any:
    return first @ kernel, second @ kernel


def two_sums(first: Any, second: Any) -> Any:
    return (first + 1.0).sum(0), (second * 2.0).sum(0)


def two_gathers(first: Any, second: Any) -> Any:
    return jax.lax.all_gather(first + 1.0, "replicas"), jax.lax.all_gather(second * 2.0, "replicas")


def two_scatters(first: Any, second: Any) -> Any:
    return tuple(jax.lax.psum_scatter(each + 1.0, "replicas", tiled=True) for each in (first, second))


def on_two_ipus(first: Any, second: Any) -> Any:
    with ipu_shard(0):
        left, right = first + 1.0, second + 2.0
    with ipu_shard(1):
        return left * 3.0, right * 4.0


def test_combine_embedding_lookups_looks_up_once() -> None:
    """Two times 60 indices take two sets of exchanges, 120 one; all 120 rows are held at once."""
    arrays = (np.zeros((512, 16), "float32"), np.zeros(60, "int32"), np.zeros(60, "int32"))
    apart, once = (profile(two_lookups, *arrays, combine_embedding_lookups=value) for value in (False, True))
    assert (count(apart, "gather"), count(once, "gather")) == (2, 1)
    assert once.total_cycles < apart.total_cycles
    assert temporary(once) > temporary(apart)


def temporary(found: Any) -> int:
    """Bytes of the largest temporary."""
    return max(int(row.bytes) for row in found.variables.itertuples() if row.kind == "temporary")


def test_combine_matmuls_multiplies_once() -> None:
    cases = ((two_products, [(32, 64), (64, 24), (64, 40)]), (one_kernel, [(24, 64), (40, 64), (64, 32)]))
    for source, shapes in cases:
        arrays = [np.zeros(shape, "float32") for shape in shapes]
        apart, once = (profile(source, *arrays, combine_matmuls=value) for value in (False, True))
        assert (count(apart, "matmul"), count(once, "matmul")) == (2, 1)
        assert once.total_cycles < apart.total_cycles


def test_maximum_reduce_many_buffer_size_shares_compute_sets() -> None:
    """Sums of 16 KiB and 16 KiB: within 32 KiB they are one, within less two."""
    arrays = (np.zeros((64, 64), "float32"), np.zeros((64, 64), "float32"))
    apart, small, many = (
        profile(two_sums, *arrays, maximum_reduce_many_buffer_size=size) for size in (0, 2 * 16384 - 1, 2 * 16384)
    )
    assert (count(apart, "reduce_sum"), count(many, "reduce_many")) == (2, 1)
    assert many.total_cycles < apart.total_cycles == small.total_cycles


def test_maximum_inter_ipu_copies_buffer_size_copies_once() -> None:
    arrays = (np.zeros((64, 64), "float32"), np.zeros((64, 64), "float32"))
    found = [profile(on_two_ipus, *arrays, maximum_inter_ipu_copies_buffer_size=size) for size in (0, 2 * 16384)]
    apart, once = ([row for row in each.steps.itertuples() if row.kind == "GlobalExchange"] for each in found)
    assert (len(apart), len(once)) == (2, 1)
    assert found[1].total_cycles < found[0].total_cycles


@pytest.mark.parametrize(
    ("source", "option", "result_bytes"),
    [
        (two_gathers, "maximum_all_gather_buffer_size", 2 * 16384),
        (two_scatters, "maximum_reduce_scatter_buffer_size", 16384 // 2),
    ],
)
def test_gathers_and_scatters_of_replicas_that_wait_are_one(source: Any, option: str, result_bytes: int) -> None:
    """64 x 64 floats on two replicas: a gather makes twice their bytes, a scatter half; the ring waits once."""
    arrays = (np.zeros((64, 64), "float32"), np.zeros((64, 64), "float32"))
    apart, small, once = (
        profile(source, *arrays, replicas=2, **{option: size}) for size in (0, 2 * result_bytes - 1, 2 * result_bytes)
    )
    steps = [len(found.steps.query("kind == 'GlobalExchange'")) for found in (apart, small, once)]
    assert steps == [2, 2, 1]
    assert once.total_cycles < apart.total_cycles == small.total_cycles
    sent = [int(found.steps.query("kind == 'GlobalExchange'")["bytes_sent"].sum()) for found in (apart, once)]
    assert sent[0] == sent[1]


def test_combined_lookups_of_a_model_share_one_table() -> None:
    """An embedding that is called twice."""
    words, tags = keras.Input((8,), batch_size=2, dtype="int32"), keras.Input((8,), batch_size=2, dtype="int32")
    table = keras.layers.Embedding(64, 16)
    model = keras.Model([words, tags], table(words) + table(tags))
    once = wb.profile(model, config=config_of(combine_embedding_lookups=True))
    assert count(once, "gather") == 1
