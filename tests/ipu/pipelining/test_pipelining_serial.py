"""Batch serialisation: passes of a stage over several elements, whose numbers are those of as many micro-batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import BATCH, COUNT, Ran, close, expected
from workbench import tf
from workbench.errors import InputError
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule, RecomputationMode

TIMES = 2
ALL = COUNT * TIMES


def test_numbers_and_buffers_are_those_of_all_elements() -> None:
    """4 x 2 elements an update. Two activations of 2 x 8 floats wait in a buffer for the other pass; the activations
    of one element come and go in each turn, and the sums of gradients are as large as the variables."""
    configure(ipus=1)
    ran = Ran(batch_serialization_iterations=TIMES, repeat_count=2)
    losses, weights = expected(repeats=2, count=ALL)
    assert close(ran.out, [np.full(2 * ALL, 0.5), losses])
    assert close(ran.weights, weights)
    assert ran.profile.meta["config"]["pipeline.schedule"] == "Sequential"
    assert ran.profile.meta["samples_per_call"] == BATCH * ALL
    table = ran.profile.variables
    buffers = table[(table["name"] == "stage0/scan") & (table["kind"] == "activation")]
    assert TIMES * BATCH * 8 * 4 in set(buffers["bytes"])
    assert set(table[table["name"] == "stage0/matmul"].query("kind == 'activation'")["bytes"]) == {BATCH * 8 * 4}
    assert dict(table[table["kind"] == "optimizer"][["name", "bytes"]].to_numpy().tolist()) == {
        "first/accumulator": 192,
        "second/accumulator": 96,
    }


@pytest.mark.slow
def test_every_pass_is_a_loop_of_its_turns() -> None:
    """A stage's pass is called once for each of the 4 micro-batches; the matrix product in it runs twice each time."""
    configure(ipus=1)
    ran = Ran(batch_serialization_iterations=TIMES)
    functions = ran.executable.graph.functions
    loops = {
        name: [(node.op, node.times) for node in functions[name].nodes if node.op == "scan"]
        for name in ("stage0_forward", "stage1_forward", "stage1_backward", "stage0_backward")
    }
    assert loops == {name: [("scan", TIMES)] for name in loops}
    steps = ran.profile.steps
    products = steps[steps["name"] == "stage0/matmul/compute"]
    assert products[["direction", "times"]].to_numpy().tolist() == [["forward", ALL], ["backward", ALL]]


@pytest.mark.slow
def test_on_replicas() -> None:
    configure(ipus=2)
    ran = Ran(batch_serialization_iterations=TIMES)
    losses, weights = expected(divided=2, count=ALL * 2)
    assert close(ran.out[1:], [losses.reshape(ALL, 2)])
    assert close(ran.weights, weights)


@pytest.mark.slow
def test_with_recomputation() -> None:
    configure(ipus=1, allow_recompute=True)
    mode = RecomputationMode.RecomputeAndBackpropagateInterleaved
    ran = Ran(batch_serialization_iterations=TIMES, recomputation_mode=mode)
    assert close(ran.weights, expected(count=ALL)[1])


@pytest.mark.slow
def test_numbers_in_inference() -> None:
    """Single numbers, each of which goes through both stages in a turn of its own."""
    configure(ipus=1)
    ran = Ran(
        [lambda rate, x: (rate, x + 1.0), lambda rate, x: (rate, x * 2.0)],
        data=[np.float32(x) for x in range(8)],
        optimizer_function=None,
        batch_serialization_iterations=TIMES,
        accumulate_outfeed=True,
    )
    assert close(ran.out, [[0.5 * ALL], [sum(2.0 * (x + 1) for x in range(ALL))]])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"pipeline_schedule": PipelineSchedule.Grouped}, NotImplementedError, "not supported under Grouped"),
        ({"device_mapping": [0, 1]}, NotImplementedError, r"\[0, 1\], but then all stages must be on a single IPU"),
        ({"reduction_method": GradientAccumulationReductionMethod.MEAN}, ValueError, "needs the reduction method SUM"),
    ],
)
def test_what_cannot_be_serialised(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    configure(ipus=2)
    with pytest.raises(error, match=text):
        Ran(batch_serialization_iterations=TIMES, **arguments)


def test_a_rate_from_the_infeed_is_none_of_the_update() -> None:
    def one(rate: Any, x: Any, given: Any) -> Any:
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        return w * x, given

    def optimize(loss: Any, given: Any) -> Any:
        return OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(given), loss)

    configure(ipus=1)
    numbers = [(np.float32(x), np.float32(0.1)) for x in range(8)]
    with pytest.raises(InputError, match="the optimizer uses infeed/1, of which a serialised batch has 2"):
        Ran(
            [one, lambda x, given: (x * 1.0, given)],
            data=numbers,
            optimizer_function=optimize,
            batch_serialization_iterations=TIMES,
        )
