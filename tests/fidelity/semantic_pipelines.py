"""What pipelines give: of feeds, constants, masks, sums over mini-batches, and of optimizers with their own variables.

Source: graphcore/tensorflow@b2127bba python/ipu/tests/pipelining_test.py, the tests the cases name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from tests.fidelity.family_semantics import machine
from workbench import ipu, tf
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.ipu.ipu_outfeed_queue import IPUOutfeedQueue
from workbench.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule, pipeline

COUNT, FED = 8, 12
CONSTANT = 10.01
METHODS = ipu.gradient_accumulation.GradientAccumulationReductionMethod


class Piped:
    """A pipeline run once or more: everything its outfeed has, and its variables behind each run by name."""

    def __init__(
        self,
        stages: Sequence[Any],
        count: int,
        *inputs: Any,
        infeed: Any = None,
        runs: int = 1,
        between: Callable[[Any], None] = lambda session: None,
        **arguments: Any,
    ) -> None:
        outfeed = IPUOutfeedQueue()
        with machine(auto_select_ipus=4, ipu_model__tiles_per_ipu=4):
            values = [np.asarray(value, np.float32) for value in inputs]
            feeds = [tf.placeholder(value.dtype, value.shape) for value in values]

            def net(*given: Any) -> Any:
                return pipeline(
                    list(stages), count, inputs=list(given), infeed_queue=infeed, outfeed_queue=outfeed, **arguments
                )

            with ipu.scopes.ipu_scope("/device:IPU:0"):
                operation = ipu.ipu_compiler.compile(net, feeds)
            taken = outfeed.dequeue()
            with tf.Session() as session:
                session.run([tf.global_variables_initializer(), *([infeed.initializer] if infeed else [])])
                self.variables = []
                for run in range(runs):
                    if run:
                        between(session)
                    session.run(operation, dict(zip(feeds, values, strict=True)))
                    self.variables.append({each.name: np.asarray(session.run(each)) for each in tf.global_variables()})
                self.out = session.run(taken)


def _weight(x: Any) -> Any:
    return tf.get_variable("w", [], initializer=tf.constant_initializer(1.0)) * x


def _same(*given: Any) -> Any:
    return given if len(given) > 1 else given[0]


def _descending(rate: float = 0.01, more: float = 0.0) -> Callable[..., Any]:
    """Gradient descent on the sum of what the last stage hands on, and a number."""

    def function(*losses: Any) -> Any:
        loss = sum(losses[1:], losses[0]) + more
        return OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(rate), loss)

    return function


def _increasing(last: int, element: Callable[[int], Any]) -> Iterator[Any]:
    """Batches of two out of 0, 1 … last - 1 over and over."""
    numbers = cycle(range(last))
    return (np.stack([element(next(numbers)), element(next(numbers))]) for _ in cycle([0]))


def unweighted() -> Any:
    """Squares, doubled, of 0 to 4."""
    infeed = IPUInfeedQueue(np.full(1, value, np.float32) for value in cycle(range(5)))
    return np.ravel(Piped([lambda x: x * x, lambda x: x + x, _same], 6, infeed=infeed).out).tolist()


def duplicated() -> Any:
    """Two ones handed on twice each."""
    stages = [lambda x, y: (x, y, y, x), _same, lambda _x, _y, y, x: (x, y)]
    found = Piped(stages, FED, np.ones((1, 4, 4, 2)), np.ones((1, 2)), pipeline_schedule=PipelineSchedule.Interleaved)
    (x,), (y,) = (set(np.asarray(each).ravel().tolist()) for each in found.out)
    return {"x": int(x), "y": int(y)} if len(found.out[0]) == FED else f"{len(found.out[0])} mini-batches"


def loss_out() -> Any:
    """The loss of every mini-batch: of a weight of one times zero, and one."""
    stages = [lambda _, x: _weight(x), _same, _same, _same]
    out = Piped(
        stages,
        COUNT,
        10.0,
        0.0,
        optimizer_function=_descending(more=1.0),
        outfeed_loss=True,
        reduction_method=METHODS.MEAN,
    ).out
    return "ones(8)" if np.array_equal(np.ravel(out), np.ones(COUNT)) else np.ravel(out).tolist()


def masked() -> Any:
    """Two outputs, the first left out: one and a one for each stage behind the first.

    The loss is the second; the test's is the first, which depends on no variable, and that is refused here.
    """
    stages = [lambda x: (x, _weight(x)), *[lambda x, other: (x, other + 1)] * 3]
    out = Piped(
        stages,
        COUNT,
        1.0,
        optimizer_function=lambda _, y: _descending()(y),
        outfeed_mask=[True, False],
        reduction_method=METHODS.MEAN,
    ).out
    kept = out if isinstance(out, list | tuple) else [out]
    return "full((1,8),4)" if np.array_equal(np.asarray(kept), np.full((1, COUNT), 4)) else np.asarray(kept).tolist()


def _summed(*values: float, trained: bool, **more: Any) -> list[list[float]]:
    """What an outfeed of sums over the mini-batches has for these values handed through."""
    first = (lambda x, *others: (_weight(x), *others) if others else _weight(x)) if trained else _same
    optimizer = {"optimizer_function": _descending(more=1.0)} if trained else {}
    out = Piped([first, _same, _same, _same], COUNT, *values, accumulate_outfeed=True, **optimizer, **more).out
    return [np.ravel(each).tolist() for each in (out if len(values) > 1 else [out])]


def summed_training() -> Any:
    """One, and one and two, eight times."""
    return {"single": _summed(1.0, trained=True), "multiple": _summed(1.0, 2.0, trained=True)}


def summed_inference() -> Any:
    """The same without training."""
    return {"single": _summed(1.0, trained=False), "multiple": _summed(1.0, 2.0, trained=False)}


def summed_loss() -> Any:
    """A loss of one, eight times, whatever the way gradients are added up."""
    stages = [_weight, _same, _same, _same]
    given = {"optimizer_function": _descending(more=1.0), "outfeed_loss": True, "accumulate_outfeed": True}
    found = {np.ravel(Piped(stages, COUNT, 0.0, reduction_method=each, **given).out)[0] for each in METHODS}
    return [float(each) for each in found]


def summed_wide() -> Any:
    """Halves of 30,001 summed as floats."""
    far = lambda x: tf.cast(x + 10000, tf.float16)  # noqa: E731
    out = Piped(
        [_weight, far, far, far],
        COUNT,
        1.0,
        optimizer_function=_descending(more=1.0),
        accumulate_outfeed=True,
        accumulate_outfeed_dtype=tf.float32,
    ).out
    return [[float(np.ravel(out)[0])]]


def constant() -> Any:
    """Twice 42 and three."""
    out = Piped([lambda x: 2 * x, *[lambda x: x + 1] * 3], COUNT, 42.0, reduction_method=METHODS.MEAN).out
    return np.ravel(out).tolist()


def conditional() -> Any:
    """One where more than two was fed, else two."""
    infeed = IPUInfeedQueue(np.full((1, 1), value, np.float32) for value in cycle(range(10)))

    def last(x: Any) -> Any:
        return tf.cond(tf.reshape(x, []) > 2.0, lambda: tf.constant(1.0), lambda: tf.constant(2.0))

    return np.ravel(Piped([_same, _same, last], 6, infeed=infeed).out).tolist()


def fed_by_name() -> Any:
    """A convolution of ones on one input, the other added, summed, and a constant."""
    images = _increasing(5, lambda value: np.full((4, 4, 2), value, np.float32))
    infeed = IPUInfeedQueue({"a": image, "b": (image + 10) / 2} for image in images)

    def stage1(c: Any, a: Any, b: Any) -> Any:
        kernel = tf.get_variable("k", [1, 1, 2, 2], initializer=tf.ones_initializer())
        return tf.nn.conv2d(a, kernel, strides=1, padding="SAME") + b, c

    stages = [stage1, lambda x, c: tf.reduce_sum(x) + c, _same]
    out = Piped(stages, FED, CONSTANT, infeed=infeed, pipeline_schedule=PipelineSchedule.Interleaved).out
    return [round(float(each), 2) for each in np.ravel(out)]


def own_variable() -> Any:
    """A weight after each of two runs, of which an optimizer adds a variable to the gradient: first two, then four."""

    class Adding(tf.train.GradientDescentOptimizer):  # type: ignore[misc, name-defined]
        def __init__(self, rate: float) -> None:
            super().__init__(rate)
            self.p = tf.get_variable("p", [], initializer=tf.constant_initializer(2.0), trainable=False)

        def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
            return super().apply_gradients([(each + self.p, v) for each, v in grads_and_vars], global_step, name)

    def four(session: Any) -> None:
        (variable,) = [each for each in tf.global_variables() if each.name.startswith("p")]
        session.run(variable.assign(4.0))

    found = Piped(
        [_weight, _same, _same, _same],
        COUNT,
        1.0,
        runs=2,
        between=four,
        outfeed_loss=True,
        optimizer_function=lambda x: OptimizerFunctionOutput(Adding(0.5), x),
        reduction_method=METHODS.SUM,
    )
    return [float(next(value for name, value in each.items() if name.startswith("w"))) for each in found.variables]


# id -> program; the test it is taken from -> program, for ids that are others.
BY_ID: dict[str, Callable[[], Any]] = {
    "SEM-pipe-novars": unweighted,
    "SEM-pipe-dup": duplicated,
    "SEM-pipe-loss": loss_out,
    "SEM-pipe-mask": masked,
    "SEM-pipe-acc-train": summed_training,
    "SEM-pipe-acc-infer": summed_inference,
    "SEM-pipe-acc-inf": summed_inference,
    "SEM-pipe-acc-loss": summed_loss,
    "SEM-pipe-acc-dtype": summed_wide,
    "SEM-pipe-const": constant,
    "SEM-pipe-cond": conditional,
    "SEM-pipe-kwargs": fed_by_name,
    "SEM-pipe-vars-in-opt": own_variable,
}
BY_TEST: dict[str, Callable[[], Any]] = {
    "testPipelineWithStagesNoVariables": unweighted,
    "testDuplicateInputsOutputs": duplicated,
    "testOutfeedLoss": loss_out,
    "testOutfeedMask": masked,
    "testConstantInput": constant,
    "testOutfeedLossAccumulated": summed_loss,
    "testOutfeedAccumulatedTraining": summed_training,
    "testOutfeedAccumulatedTrainingSetDtype": summed_wide,
    "testOutfeedAccumulatedInference": summed_inference,
    "testVariableInOptimizer": own_variable,
    "testPipelineInferenceWithConditional": conditional,
    "testPipelineWithInfeedsKwargs": fed_by_name,
}
