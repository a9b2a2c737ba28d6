"""Other work in the function a pipeline is compiled in: before its micro-batches, or after its weight update, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure
from tests.ipu.pipelining.pipelines import COUNT, DATA, FIRST, close, descend, expected, first, second
from workbench import tf
from workbench.errors import InputError
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import PipelineSchedule, pipeline


class Run:
    """A function that makes a pipeline with `piped(rate)`, compiled and run once."""

    def __init__(self, build: Callable[..., Any], rate: float = 1.0, **arguments: Any) -> None:
        infeed, outfeed = IPUInfeedQueue(DATA), IPUOutfeedQueue()
        given = {"optimizer_function": descend, "gradient_accumulation_count": COUNT, **arguments}

        def piped(rate: Any) -> Any:
            return pipeline([first, second], inputs=[rate], infeed_queue=infeed, outfeed_queue=outfeed, **given)

        base = tf.placeholder(tf.float32, [])
        operation = compiled(lambda given: build(given, piped), [base])
        taken = outfeed.dequeue()
        with tf.Session() as session:
            session.run([infeed.initializer, tf.global_variables_initializer()])
            self.result = session.run(operation, {base: rate})
            self.out = session.run(taken)
            self.weights = {each.handle: np.asarray(each) for each in tf.global_variables()}
            self.profile, self.executable = session.profile, session.executables[-1]


def counting(base: Any, piped: Any) -> Any:
    """A rate computed on the IPU, and steps counted behind the update."""
    step = tf.get_variable("step", [], initializer=tf.constant_initializer(3.0), trainable=False)
    rate = base * 0.5
    made = piped(rate)
    with tf.control_dependencies([made]):
        counted = step.assign_add(1.0)
    return rate + 1.0, counted, made


@pytest.mark.parametrize(
    "schedule",
    [PipelineSchedule.Grouped, *(pytest.param(each, marks=pytest.mark.slow) for each in list(PipelineSchedule)[1:])],
)
def test_a_rate_made_before_and_a_count_behind(schedule: PipelineSchedule) -> None:
    configure(ipus=2)
    ran = Run(counting, pipeline_schedule=schedule)
    losses, weights = expected()
    assert [float(each) for each in ran.result] == [1.5, 4.0]
    assert close(ran.out, [np.full(COUNT, 0.5), losses])
    assert close([ran.weights["first"], ran.weights["second"], ran.weights["step"]], [*weights, 4.0])
    steps = ran.profile.steps
    beside = steps[steps["parent"].isin(["before_pipeline", "after_pipeline"])]
    assert set(beside["ipu"]) == {0}
    assert set(beside["times"]) == {1}
    parents = [ran.executable.program.functions[name] for name in ("before_pipeline", "after_pipeline")]
    assert all(parent.children for parent in parents)
    assert ran.profile.pipeline.bubbles()["fraction"] > 0


@pytest.mark.slow
def test_on_replicas() -> None:
    configure(ipus=4)
    ran = Run(counting)
    losses, weights = expected(divided=2, count=2 * COUNT)
    assert [float(each) for each in ran.result] == [1.5, 4.0]
    assert close(ran.out[1:], [losses.reshape(COUNT, 2)])
    assert close([ran.weights["first"], ran.weights["second"]], weights)


@pytest.mark.slow
def test_a_weight_of_the_first_stage_is_read_behind_its_update() -> None:
    def build(base: Any, piped: Any) -> Any:
        made = piped(base * 0.5)
        with tf.control_dependencies([made]), tf.variable_scope(tf.get_variable_scope(), reuse=True):
            return tf.reduce_sum(tf.get_variable("first", [6, 8]) * 1.0), made

    configure(ipus=2)
    ran = Run(build)
    assert np.isclose(ran.result[0], expected()[1][0].sum(), rtol=1e-4)
    assert not np.isclose(ran.result[0], FIRST.sum(), rtol=1e-4)


@pytest.mark.slow
def test_work_that_changes_nothing_beside_a_repeated_pipeline() -> None:
    def build(base: Any, piped: Any) -> Any:
        rate = base * 0.5
        return rate, piped(rate)

    configure(ipus=2)
    ran = Run(build, repeat_count=2)
    assert float(ran.result[0]) == 0.5
    assert close([ran.weights["first"], ran.weights["second"]], expected(repeats=2)[1])


def _changing(base: Any, piped: Any) -> Any:
    made = piped(base)
    with tf.control_dependencies([made]), tf.variable_scope(tf.get_variable_scope(), reuse=True):
        return tf.get_variable("first", [6, 8]).assign_sub(tf.zeros([6, 8])), made


def _away(base: Any, piped: Any) -> Any:
    made = piped(base)
    with tf.control_dependencies([made]), tf.variable_scope(tf.get_variable_scope(), reuse=True):
        return tf.reduce_sum(tf.get_variable("second", [8, 3])), made


def _queued(base: Any, piped: Any) -> Any:
    return IPUOutfeedQueue().enqueue(base + 1.0), piped(base)


def _twice(base: Any, piped: Any) -> Any:
    other = pipeline(
        [lambda x: x + 1.0, lambda x: x * 2.0],
        inputs=[base],
        gradient_accumulation_count=4,
        outfeed_queue=IPUOutfeedQueue(),
    )
    return piped(base), other


@pytest.mark.parametrize(
    ("build", "repeats", "text"),
    [
        (_changing, 1, "'first' is written after a pipeline that uses it too"),
        (_away, 1, "'second' of a later stage is read after the pipeline"),
        (_queued, 1, "a queue is used beside a pipeline"),
        (counting, 2, "step would be written once beside a pipeline that runs 2 times"),
        (_twice, 1, "2 pipelines are compiled together"),
    ],
)
def test_what_cannot_be_beside_a_pipeline(build: Any, repeats: int, text: str) -> None:
    configure(ipus=2)
    with pytest.raises(InputError, match=text):
        Run(build, repeat_count=repeats)
