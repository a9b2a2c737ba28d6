"""How a pipeline adds up gradients, and elements of its infeed that have no batch dimension."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import COUNT, DATA, FIRST, Ran, close, descend, expected, first, second
from workbench import tf
from workbench.errors import InputError
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.ops.pipelining_ops import PipelineSchedule

MEAN, RUNNING_MEAN = GradientAccumulationReductionMethod.MEAN, GradientAccumulationReductionMethod.RUNNING_MEAN


@pytest.mark.parametrize(
    "schedule",
    [PipelineSchedule.Grouped, *(pytest.param(each, marks=pytest.mark.slow) for each in list(PipelineSchedule)[1:])],
)
def test_a_running_mean_scales_what_is_there(schedule: PipelineSchedule) -> None:
    """Two updates: the stages' counters begin again with each."""
    configure(ipus=2)
    ran = Ran(reduction_method=RUNNING_MEAN, pipeline_schedule=schedule, repeat_count=2)
    assert close(ran.weights, expected(repeats=2, divided=COUNT)[1])
    table = ran.profile.variables.set_index("name")
    counters = table.loc[["stage0/micro_batches", "stage1/micro_batches"], ["dtype", "ipu", "bytes"]]
    assert counters.to_numpy().tolist() == [["int32", 0, 4], ["int32", 1, 4]]


@pytest.mark.parametrize("method", list(GradientAccumulationReductionMethod))
@pytest.mark.slow
def test_means_do_not_overflow_where_sums_do(method: GradientAccumulationReductionMethod) -> None:
    """d loss / d w is 3e4 for each of four micro-batches: 1.2e5 is beyond float16, their mean is not."""

    def scaled(rate: Any, x: Any, y: Any) -> Any:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(1.0))
        return rate, tf.reduce_sum(x) * 0.0 + w * 3e4

    configure(ipus=2)
    ran = Ran(
        [scaled, lambda rate, value: (rate, value * 1.0)],
        reduction_method=method,
        inputs=1e-4,
        gradient_accumulation_dtype=tf.float16,
    )
    (weight,) = ran.weights
    if method is GradientAccumulationReductionMethod.SUM:
        assert np.isinf(weight)
    else:
        assert np.isclose(weight, 1.0 - 3.0, rtol=1e-3)


def again(rate: Any, hidden: Any, y: Any) -> Any:
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        w = tf.get_variable("first", [6, 8])
    return rate, tf.reduce_mean(tf.matmul(hidden, tf.transpose(w)) ** 2)


def test_a_variable_of_two_stages_has_no_running_mean_in_a_pipeline() -> None:
    configure(ipus=1)
    with pytest.raises(InputError, match=r"a running mean of the gradients of 'first', which the stages \[0, 1\] use"):
        Ran([first, again], device_mapping=[0, 0], reduction_method=RUNNING_MEAN)


@pytest.mark.slow
def test_sequentially_a_variable_of_two_stages_has_one() -> None:
    """Both gradients of a micro-batch come before the next one's; only the first of them scales what is there."""
    configure(ipus=1)
    ran = Ran(
        [first, again],
        device_mapping=[0, 0],
        reduction_method=RUNNING_MEAN,
        pipeline_schedule=PipelineSchedule.Sequential,
    )

    def loss_of(w: Any, x: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w) @ w.T) ** 2)

    start = jnp.asarray(FIRST)
    gradients = [jax.grad(loss_of)(start, x) for x, _ in DATA[:COUNT]]
    assert close(ran.weights, [start - 0.5 * sum(gradients) / COUNT])


def test_elements_without_a_batch_dimension() -> None:
    """Numbers and vectors: w moves by the sum of d (w * x . v) / d w = x * sum(v)."""
    numbers = [(np.float32(x), np.arange(3, dtype=np.float32) + x) for x in range(1, 17)]

    def one(rate: Any, x: Any, v: Any) -> Any:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        return rate, w * x, v, x

    def two(rate: Any, product: Any, v: Any, x: Any) -> Any:
        return rate, x, tf.reduce_sum(product * v)

    configure(ipus=2)
    ran = Ran([one, two], data=numbers, inputs=0.01, optimizer_function=lambda rate, x, loss: descend(rate, loss))
    losses = [2.0 * x * (3 * x + 3) for x in range(1, COUNT + 1)]
    assert close(ran.out, [np.full(COUNT, 0.01), np.arange(1, COUNT + 1), losses])
    assert close(ran.weights, [2.0 - 0.01 * sum(x * (3 * x + 3) for x in range(1, COUNT + 1))])
    assert ran.profile.meta["batch_size"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (None, "float32"),
        (tf.float16, "float16"),
        (lambda tensor: tf.float16 if tensor.shape == () else None, "float16"),
    ],
)
def test_outputs_are_added_up_on_the_ipu(kind: Any, dtype: str) -> None:
    """The rate and the loss, single numbers, leave once, with the update of the last stage."""
    configure(ipus=2)
    ran = Ran(accumulate_outfeed=True, accumulate_outfeed_dtype=kind)
    losses, weights = expected()
    assert [each.dtype for each in ran.out] == [dtype] * 2
    assert np.allclose(np.stack(ran.out), [[COUNT * 0.5], [losses.sum()]], rtol=2e-3 if dtype == "float16" else 2e-5)
    assert close(ran.weights, weights)
    leaving = ran.profile.steps.query("name.str.endswith('to_host')")
    assert leaving[["parent", "times", "ipu"]].to_numpy().tolist() == [["stage1_update", 1, 1]] * 2
    table = ran.profile.variables.set_index("name")
    assert table.loc[["outfeed/0/accumulator", "outfeed/1/accumulator"], "dtype"].tolist() == [dtype] * 2


@pytest.mark.slow
def test_sums_of_an_inference_begin_at_zero_in_every_run() -> None:
    configure(ipus=2)
    ran = Ran(
        [lambda rate, x: (rate, x + 1.0), lambda rate, x: (rate, x * 2.0)],
        data=[np.float32(x) for x in range(16)],
        optimizer_function=None,
        accumulate_outfeed=True,
        repeat_count=2,
    )
    assert ran.out[1].tolist() == [2.0 * (1 + 2 + 3 + 4), 2.0 * (5 + 6 + 7 + 8)]


@pytest.mark.slow
def test_numbers_for_every_replica() -> None:
    configure(ipus=4)
    ran = Ran(
        [lambda rate, x: (rate, x + 1.0), lambda rate, x: (rate, x * 2.0)],
        data=[np.float32(x) for x in range(16)],
        optimizer_function=None,
    )
    assert ran.out[1].tolist() == [[2.0 * (2 * turn + replica + 1) for replica in range(2)] for turn in range(COUNT)]


@pytest.mark.slow
def test_a_mean_scales_every_gradient() -> None:
    configure(ipus=2)
    ran = Ran([first, second], reduction_method=MEAN)
    assert close(ran.weights, expected(divided=COUNT)[1])
    assert not any("micro_batches" in name for name in ran.profile.variables["name"])
