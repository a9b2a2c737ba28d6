"""`ipu.cross_replica_ops`: sums and means over the replicas of a program, whole or in groups, and their gradients."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.ipu.graphs import configure, run
from workbench import ipu, tf
from workbench.errors import InputError
from workbench.ipu import cross_replica_ops
from workbench.ipu.ipu_strategy import IPUStrategy

PARTS = np.array([1.0, 10.0, 100.0, 1000.0], np.float32)  # of four replicas


def on_replicas(function: Any, ipus: int = 4) -> tuple[np.ndarray, Any]:
    """What each of four replicas, or as many as IPUs, gets of a function of its part, and the strategy that ran it."""
    configure(ipus)
    strategy = IPUStrategy()
    given = iter(tf.data.Dataset.from_tensor_slices(PARTS))
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function
    def step() -> None:
        outfeed.enqueue(function(next(given)))

    strategy.run(step)
    return np.ravel(np.asarray(outfeed.dequeue())), strategy


@pytest.mark.parametrize(
    ("size", "sums"),
    [(None, [1111] * 4), (4, [1111] * 4), (2, [11, 11, 1100, 1100]), (1, [1, 10, 100, 1000])],
)
def test_the_sum_is_over_all_or_over_groups_that_follow_each_other(size: int | None, sums: list[int]) -> None:
    made, _ = on_replicas(lambda x: cross_replica_ops.cross_replica_sum(x, size))
    np.testing.assert_array_equal(made, sums)
    made, _ = on_replicas(lambda x: cross_replica_ops.cross_replica_mean(x, replica_group_size=size, name="mean"))
    np.testing.assert_allclose(made, np.array(sums) / (size or 4))


def collectives(strategy: Any) -> int:
    """Bytes that a replica sends to others."""
    steps = strategy.profile.steps
    return int(steps[steps.kind == "GlobalExchange"].bytes_sent.sum())


def test_a_ring_of_a_group_carries_less_than_that_of_all() -> None:
    sent = []
    for size in (None, 2):
        _, strategy = on_replicas(lambda x, size=size: cross_replica_ops.cross_replica_sum(tf.fill([64], x), size)[0])
        sent.append(collectives(strategy))
    assert sent[0] * 2 == sent[1] * 3 > 0  # 2 (n - 1) / n of the tensor: 3/2 of it with 4 replicas, 1 with 2


@pytest.mark.parametrize("size", [None, 2])
def test_a_gradient_is_summed_over_the_replicas_of_the_sum(size: int | None) -> None:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = x * cross_replica_ops.cross_replica_sum(x * x, size)
        return tape.gradient(loss, x)

    made, _ = on_replicas(gradient)
    grouped = PARTS.reshape(1, 4) if size is None else PARTS.reshape(2, 2)
    squares = np.repeat((grouped**2).sum(1), grouped.shape[1])
    np.testing.assert_allclose(made, squares + 2 * PARTS * np.repeat(grouped.sum(1), grouped.shape[1]))


def test_one_replica_has_its_value() -> None:
    configure(1)
    (made, *_), _ = run(
        lambda x: [cross_replica_ops.cross_replica_sum(x), cross_replica_ops.cross_replica_mean(x)], [3.0]
    )
    np.testing.assert_array_equal(made, [3])
    assert float(cross_replica_ops.cross_replica_mean(4.0)) == 4


def test_what_is_assumed_equal_has_its_values_and_is_copied_unless_in_place() -> None:
    configure(1)

    def doubled(x: Any, y: Any) -> Any:
        alike = cross_replica_ops.assume_equal_across_replicas({"x": x, "y": [y]})
        return [2.0 * alike["x"], cross_replica_ops.assume_equal_across_replicas(alike["y"][0], inplace=True)]

    made, _ = run(doubled, [1.0, 2.0], [5.0])
    np.testing.assert_array_equal(made[0], [2, 4])
    np.testing.assert_array_equal(made[1], [5])


def test_a_group_must_divide_the_replicas() -> None:
    with pytest.raises(InputError, match=r"replica_group_size is 3, and the program has 4 replicas.*divides 4"):
        on_replicas(lambda x: cross_replica_ops.cross_replica_sum(x, 3))
    with pytest.raises(InputError, match=r"replica_group_size is 0"):
        cross_replica_ops.cross_replica_mean(1.0, 0)
    with pytest.raises(wb.WorkbenchError, match="replica_group_size is 'two'"):
        cross_replica_ops.cross_replica_sum(1.0, "two")


class Grouped(keras.layers.Layer):  # type: ignore[misc]
    """A sum over pairs of replicas."""

    def call(self, x: Any) -> Any:
        return cross_replica_ops.cross_replica_sum(x, 2)


def pairs_in_keras(ipus: int) -> None:
    configure(ipus)
    with IPUStrategy().scope():
        model = keras.Sequential([keras.Input((2,)), Grouped()])
        model.compile(steps_per_execution=2)
        model.predict(np.ones((4, 2), np.float32), batch_size=2, verbose=0)


@pytest.mark.parametrize(
    "asked",
    [
        lambda replicas: on_replicas(lambda x: cross_replica_ops.cross_replica_mean(x, 2), replicas),
        pairs_in_keras,
        lambda replicas: wb.compile(
            lambda x: cross_replica_ops.cross_replica_sum(x, 2), np.ones(2, np.float32), replicas=replicas
        ),
    ],
    ids=["strategy", "keras", "compile"],
)
def test_a_program_of_one_replica_has_no_groups_of_two(asked: Any) -> None:
    with pytest.raises(
        InputError, match=r"^replica_group_size is 2, and the program has 1 replica\. .*auto_select_ipus"
    ):
        asked(1)
    asked(2)
