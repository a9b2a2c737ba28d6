"""A pipeline on several replicas: each takes its own elements, and their gradients are averaged before the update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure
from tests.ipu.pipelining.pipelines import COUNT, DATA, Ran, close, descend, expected, first, second
from workbench import tf
from workbench.errors import InputError
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedMode
from workbench.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule

REPLICAS = 2


@pytest.mark.parametrize(
    "schedule",
    [PipelineSchedule.Grouped, *(pytest.param(each, marks=pytest.mark.slow) for each in list(PipelineSchedule)[1:])],
)
def test_numbers_are_those_of_one_model_over_all_elements(schedule: PipelineSchedule) -> None:
    """Micro-batch m of replica r is element 2 m + r; an update is that of the sum over m of the mean over r."""
    configure(ipus=2 * REPLICAS)
    ran = Ran(pipeline_schedule=schedule, repeat_count=2)
    losses, weights = expected(repeats=2, divided=REPLICAS, count=COUNT * REPLICAS)
    assert close(ran.out, [np.full((8, REPLICAS), 0.5), losses.reshape(8, REPLICAS)])
    assert close(ran.weights, weights)
    assert ran.executable.request.replicas == REPLICAS
    assert ran.profile.meta["replicas"] == REPLICAS
    assert ran.profile.meta["samples_per_call"] == 2 * COUNT * REPLICAS


@pytest.mark.slow
def test_the_reduction_is_in_the_update_alone_and_in_the_trace() -> None:
    """The gradients of `first` are 6 x 8 floats and those of `second` 8 x 3; the update of each stage sums its own: the
    result has their size, what arrives in a step of the ring of two half of it."""
    configure(ipus=2)
    alone = Ran()
    tf.reset_default_graph()
    configure(ipus=2 * REPLICAS)
    ran = Ran()
    functions = ran.executable.graph.functions
    summed = {
        name: [value.size_bytes for node in function.nodes if node.op == "psum" for value in node.operands]
        for name, function in functions.items()
        if any(node.op == "psum" for node in function.nodes)
    }
    assert summed == {"stage0_update": [4 * 48], "stage1_update": [4 * 24]}
    causes = [set(each.profile.blocks(max_rows=10**6)["cause"]) for each in (alone, ran)]
    assert "collective" not in causes[0]
    assert "collective" in causes[1]
    assert ran.profile.total_cycles > alone.profile.total_cycles
    tables = [each.profile.variables.set_index("name")["bytes"] for each in (alone, ran)]
    assert dict(tables[1].drop(tables[0].index)) == {
        "stage0/psum": 192,
        "stage0/psum/arriving": 96,
        "stage1/psum": 96,
        "stage1/psum/arriving": 48,
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", list(GradientAccumulationReductionMethod)[1:])
def test_means_are_over_all_elements(method: GradientAccumulationReductionMethod) -> None:
    configure(ipus=2 * REPLICAS)
    ran = Ran(reduction_method=method)
    assert close(ran.weights, expected(divided=COUNT * REPLICAS, count=COUNT * REPLICAS)[1])


@pytest.mark.slow
def test_sums_and_last_elements_have_a_dimension_of_replicas() -> None:
    configure(ipus=2 * REPLICAS)
    losses = expected(count=COUNT * REPLICAS)[0].reshape(COUNT, REPLICAS)
    assert close(Ran(accumulate_outfeed=True).out, [np.full((1, REPLICAS), COUNT * 0.5), losses.sum(0, keepdims=True)])
    tf.reset_default_graph()
    assert close(Ran(mode=IPUOutfeedMode.LAST).out, [np.full(REPLICAS, 0.5), losses[-1]])


@pytest.mark.slow
def test_replicas_of_stages_that_share_an_ipu() -> None:
    configure(ipus=REPLICAS)
    ran = Ran(device_mapping=[0, 0], pipeline_schedule=PipelineSchedule.Sequential)
    assert ran.profile.ipus == 1
    assert close(ran.weights, expected(divided=REPLICAS, count=COUNT * REPLICAS)[1])


@pytest.mark.slow
def test_replicas_draw_numbers_of_their_own() -> None:
    def noisy(rate: Any, x: Any, y: Any) -> Any:
        return first(rate, x + tf.random.uniform([2, 6]), y)

    configure(ipus=2 * REPLICAS)
    ran = Ran([noisy, second], data=[DATA[0]] * 16)
    losses = ran.out[1]
    assert losses.shape == (COUNT, REPLICAS)
    assert len(set(losses.ravel().tolist())) == COUNT * REPLICAS


@pytest.mark.slow
def test_the_state_of_an_optimizer_is_shared_out() -> None:
    def optimize(rate: Any, loss: Any) -> Any:
        return OptimizerFunctionOutput(tf.train.MomentumOptimizer(rate, 0.9), loss)

    options = {"optimizations.minimum_remote_tensor_size": 0}
    configure(ipus=2 * REPLICAS, **options)
    ran = Ran(
        optimizer_function=optimize, offload_weight_update_variables=True, replicated_optimizer_state_sharding=True
    )
    assert close(ran.weights[:2], expected(divided=REPLICAS, count=COUNT * REPLICAS)[1])
    nodes = ran.executable.graph.functions["stage0_update"].nodes
    loads = [(node.attr("name"), node.attr("shards")) for node in nodes if node.op == "remote_load"]
    assert loads == [("first/Momentum/momentum", REPLICAS)]


def test_ipus_that_make_no_whole_replica() -> None:
    configure(ipus=3)
    with pytest.raises(InputError, match=r"a pipeline of 2 IPUs on /device:IPU:0, which has 3.*auto_select_ipus = 2"):
        Ran(optimizer_function=descend)
