"""A pipeline as it is recorded: its stages traced into one body, its weight update into another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError
from workbench.ipu._feeds import body_arguments
from workbench.ipu._pipeline.asked import Asked
from workbench.tf import _graph
from workbench.tf._graph import Effects, Graph, Operation, Running, Tensor
from workbench.tf._graph.dtypes import given_type
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.control import Body, as_tensor, parameters, trace, type_of

HANDED_ON = "HandedOn"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """How a pipeline trains: its loss, the variables with gradients, and the body that updates from their sums."""

    loss: Tensor
    variables: tuple[Any, ...]
    update: Body


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """A traced pipeline: the body of a micro-batch, what it is given, what of it the host is given.

    `inputs` are the tensors given once (also those the stages captured), `element` the arguments of the body that a
    queue's element fills, `enqueued` the results for the outfeed, `stage_of` the stage that reads each variable first.
    """

    asked: Asked
    graph: Graph
    inputs: tuple[Tensor, ...]
    arguments: tuple[Tensor, ...]
    element: tuple[Tensor, ...]
    enqueued: tuple[Tensor, ...]
    training: Training | None
    stage_of: Mapping[Any, int]
    forward: Effects


def record_pipeline(asked: Asked) -> Operation:
    """The operation that runs a pipeline, with what its program is made from as its `pipeline`."""
    first = [as_tensor(each) for each in asked.inputs]
    given, named = body_arguments(asked.infeed.structure) if asked.infeed is not None else ([], {})
    _check_arguments(asked.stages[0], len(first), given, named)
    graph = Graph(outer=_graph.get_default_graph())
    arguments = parameters(graph, [type_of(tensor) for tensor in first])
    element = parameters(graph, asked.infeed.element_types if asked.infeed is not None else [])
    with graph.as_default(), _graph.scoped(after=()):
        made = _stages(asked, arguments, _element(asked.infeed, element))
        training = None if asked.optimize is None else _training(asked, graph, made)
        enqueued = _enqueued(asked, made, training)
    if asked.infeed is not None:
        asked.infeed.mark_dequeued()
    found = _forward_effects(graph, (*made, *((training.loss,) if training else ())))
    recorded = Recorded(
        asked=asked,
        graph=graph,
        inputs=(*first, *_outside(graph, training)),
        arguments=arguments,
        element=element,
        enqueued=tuple(enqueued),
        training=training,
        stage_of=_stages_of(asked, graph),
        forward=found,
    )
    return _operation(recorded)


def _check_arguments(stage: Callable[..., Any], inputs: int, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    try:
        inspect.signature(stage).bind(*range(inputs), *given, **named)
    except TypeError as error:
        raise KindError(
            f"The first stage cannot be called with {things_text(inputs, 'input')} and {len(given) + len(named)} "
            f"from the infeed queue: {error}."
        ) from None


def _element(queue: Any, tensors: Sequence[Tensor]) -> Any:
    if queue is None:
        return None
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(queue.structure), tensors)


def _stages(asked: Asked, arguments: Sequence[Tensor], element: Any) -> list[Tensor]:
    """Every stage, given what the one before returned; what the last returned."""
    given, named = body_arguments(element) if element is not None else ([], {})
    values: list[Any] = [*arguments, *given]
    for number, stage in enumerate(asked.stages):
        with _graph.scoped(stage=number, names=(), after=()):
            returned = stage(*values, **(named if number == 0 else {}))
            values = _returned(returned, number, last=number == len(asked.stages) - 1)
            if number == 0:
                values = [_handed_on(each) for each in values]
    return values


def _handed_on(tensor: Tensor) -> Tensor:
    """What the first stage was given and returns as it is, as a result of its own: later stages have it from there.

    What a stage made is handed from each stage to the next one anyway.
    """
    if tensor.op.type != "Argument":
        return tensor
    return _graph.record(HANDED_ON, jnp.copy, tensor)  # type: ignore[no-any-return]


def given_as(tensor: Tensor) -> Tensor:
    """What a tensor was when the first stage was given it, if it has only been handed on since."""
    return tensor.op.inputs[0] if tensor.op.type == HANDED_ON else tensor


def _returned(returned: Any, number: int, *, last: bool) -> list[Any]:
    several = list(returned) if isinstance(returned, list | tuple) else [] if returned is None else [returned]
    if isinstance(returned, Mapping) or any(isinstance(each, Operation) for each in several):
        raise KindError(
            f"Stage {number} returned {short(returned)}, but a stage returns a tensor, a list of them or nothing."
        )
    if not several and not last:
        raise InputError(f"Stage {number} returned nothing, so there is nothing for stage {number + 1}.")
    return [as_tensor(each) for each in several]


def _training(asked: Asked, graph: Graph, made: Sequence[Tensor]) -> Training:
    """Gradients are asked for, and applied in a body that is given their sums."""
    last = len(asked.stages) - 1
    assert asked.optimize is not None
    with _graph.scoped(stage=last, names=(), after=()):
        wanted = asked.optimize(*made)
        if not hasattr(wanted, "apply_gradients_args"):
            raise KindError(
                f"optimizer_function returned {short(wanted)}, but it must return an OptimizerFunctionOutput."
            )
        loss = as_tensor(wanted.loss)
    if loss.graph is not graph:  # of any shape: its gradients are those of its sum, as everywhere in TensorFlow
        raise InputError(f"The loss of a pipeline is {short(loss)}, but it must be a tensor made in its last stage.")
    mark = len(graph.operations)
    pairs = wanted.opt.compute_gradients(loss, *wanted.compute_gradients_args, **wanted.compute_gradients_kwargs)
    pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    _check_gradients(pairs, loss)
    del graph.operations[mark:]  # the stages' own backward passes are in their place
    if not pairs:
        raise InputError("No gradients: the loss of the pipeline depends on no trainable variable.")
    variables = tuple(variable for _, variable in pairs)

    def apply(function: Any, sums: Sequence[Tensor]) -> Any:
        return wanted.opt.apply_gradients(
            list(zip(sums, variables, strict=True)), *wanted.apply_gradients_args, **wanted.apply_gradients_kwargs
        )

    with _graph.scoped(stage=None, names=(), after=()):
        update, _ = trace(apply, [(each.shape, sums_type(asked, each)) for each in variables], apply)
    return Training(loss=loss, variables=variables, update=update)


def sums_type(asked: Asked, variable: Any) -> str:
    """The type in which gradients of a variable are added up."""
    wanted = asked.sums(variable) if callable(asked.sums) and not hasattr(asked.sums, "as_numpy_dtype") else asked.sums
    return str(variable.dtype if wanted is None else given_type(wanted, "gradient_accumulation_dtype"))


def _check_gradients(pairs: Sequence[tuple[Any, Any]], loss: Tensor) -> None:
    """What a stage's backward pass gives is what the optimizer asked for: the gradients of the loss, unchanged."""
    for gradient, variable in pairs:
        asked = getattr(getattr(gradient, "op", None), "gradient", None)
        if asked is None or asked.targets != (loss,) or not isinstance(variable, Variable):
            raise InputError(
                f"compute_gradients of the optimizer changes the gradient of {variable.name} in every micro-batch",
                expected="the gradients of the loss as they are",
                todo="change them in apply_gradients, where their sums arrive",
            )


def _enqueued(asked: Asked, made: Sequence[Tensor], training: Training | None) -> list[Tensor]:
    """What goes to the outfeed, in the structure the host is given it in."""
    if asked.loss_out and training is not None:
        asked.outfeed.enqueue(training.loss)
        return [training.loss]
    mask = [False] * len(made) if asked.mask is None else list(asked.mask)
    if len(mask) != len(made):
        raise InputError(
            f"outfeed_mask is {short(mask)}: {things_text(len(mask), 'entry')} for "
            f"{things_text(len(made), 'output')} of the last stage."
        )
    wanted = [tensor for tensor, hidden in zip(made, mask, strict=True) if not hidden]
    if wanted and asked.outfeed is None:
        names = ", ".join(tensor.name for tensor in wanted)
        raise InputError(f"The last stage returns {names}, but there is no outfeed_queue to give them to.")
    if wanted:
        asked.outfeed.enqueue(wanted)
    return wanted


def _outside(graph: Graph, training: Training | None) -> tuple[Tensor, ...]:
    """Tensors from outside that the stages or the update use without being given them."""
    later = training.update.graph.captures if training is not None else []
    return tuple(dict.fromkeys([*graph.captures, *(each for each in later if each.graph is not graph)]))


def _forward_effects(graph: Graph, targets: Sequence[Tensor]) -> Effects:
    found = Effects()
    for operation in graph.operations:
        if operation.type != "OutfeedEnqueue":
            found = found | operation.effects
    return found


def _stages_of(asked: Asked, graph: Graph) -> dict[Any, int]:
    """The stage that reads each variable first; those that read it later must be on the same IPU."""
    found: dict[Any, int] = {}
    for operation in graph.operations:
        for variable in operation.effects.reads | operation.effects.writes:
            stage = operation.scopes.stage
            first = found.setdefault(variable, 0 if stage is None else stage)
            if stage is not None and asked.devices[stage] != asked.devices[first]:
                raise InputError(
                    f"stages {first} and {stage} both use the variable {short(variable.handle)}, and they are on IPUs "
                    f"{asked.devices[first]} and {asked.devices[stage]}",
                    expected="stages that share a variable on one IPU",
                    todo=f"give both the same number in device_mapping, now {asked.devices}",
                )
    return found


def _operation(recorded: Recorded) -> Operation:
    asked, training = recorded.asked, recorded.training
    effects = recorded.forward
    if training is not None:
        effects = effects | training.update.effects
    queues = frozenset(each for each in (asked.infeed, asked.outfeed) if each is not None)

    def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
        raise InputError(
            "a pipeline is part of a larger program",
            expected="a pipeline in the function that is compiled, in no loop, branch or function inside it",
            todo="return the pipeline from the function given to ipu_compiler.compile",
        )

    made = Operation(
        "Pipeline", recorded.inputs, (), compute, name=asked.name, effects=effects | Effects(queues=queues)
    )
    made.pipeline = recorded
    return made


__all__ = ["Recorded", "Training", "given_as", "record_pipeline", "sums_type"]
