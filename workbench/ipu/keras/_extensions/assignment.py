"""Which pipeline stage each layer of a model is on: scopes around calls, assignments, and the rules they follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import keras

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, WorkbenchError
from workbench.tf.distribute import get_strategy

_OPEN: ContextVar[int | None] = ContextVar("pipeline stage", default=None)


class StageError(WorkbenchError, RuntimeError):
    """A `PipelineStage` where there can be none, or a model without what an assignment speaks of."""


class PipelineStage:
    """Calls of layers inside are on this stage of a pipeline. `stage`: from 0.

    Errors: `ValueError` for a number below 0; `RuntimeError` outside the scope of an `IPUStrategy`, and nested.
    """

    def __init__(self, stage: int) -> None:
        self._stage = stage
        self._close: Callable[[], None] | None = None

    def __enter__(self) -> PipelineStage:
        if isinstance(self._stage, bool) or not isinstance(self._stage, int) or self._stage < 0:
            raise InputError(f"the stage of a PipelineStage is {self._stage!r}", expected="a whole number from 0")
        if not hasattr(get_strategy(), "_ipu_device"):
            raise StageError(
                "a PipelineStage is opened outside the scope of an IPUStrategy",
                todo="write it inside `with strategy.scope():`",
            )
        if _OPEN.get() is not None:
            raise StageError(
                f"PipelineStage({self._stage}) is opened inside PipelineStage({_OPEN.get()})",
                expected="one stage for each call",
                todo="close the outer one first",
            )
        token = _OPEN.set(self._stage)
        # Operations that are no layers note their calls as they are made, layers at the end of theirs; functions of
        # keras.ops, what operators of tensors are and what makes a mask, ask for a symbolic call alone.
        ways = ((keras.Operation, "__call__"), (keras.layers.Layer, "__call__"), (keras.Operation, "symbolic_call"))
        before = [(kind, name, vars(kind)[name]) for kind, name in ways]
        for kind, name, call in before:
            setattr(kind, name, _noting(call))

        def close() -> None:
            for kind, name, call in before:
                setattr(kind, name, call)
            _OPEN.reset(token)

        self._close = close
        return self

    def __exit__(self, *raised: object) -> None:
        if self._close is not None:
            self._close()
            self._close = None


def _noting(call: Any) -> Any:
    """Calls that note the stage they are made in with each tensor's maker."""

    def noted(operation: Any, *args: Any, **kwargs: Any) -> Any:
        made = call(operation, *args, **kwargs)
        stage = _OPEN.get()
        for tensor in keras.tree.flatten(made) if stage is not None else ():
            maker = getattr(tensor, "_keras_history", None)
            if maker is not None and maker[0] is operation:
                if not hasattr(operation, "_ipu_stages"):
                    object.__setattr__(operation, "_ipu_stages", {})
                operation._ipu_stages[maker[1]] = stage
        return made

    return noted


class LayerPipelineStageAssignment:
    """The stage of a layer; None: not assigned yet."""

    def __init__(self, layer: Any, pipeline_stage: int | None = None) -> None:
        self._layer = layer
        self.pipeline_stage = pipeline_stage

    @property
    def layer(self) -> Any:
        """The layer."""
        return self._layer

    def __str__(self) -> str:
        return f"Layer: {self._layer.name} Pipeline Stage: {self.pipeline_stage}"

    __repr__ = __str__


class SequentialLayerPipelineStageAssignment(LayerPipelineStageAssignment):
    """The stage of a layer of a Sequential model."""


class ModelLayerPipelineStageAssignment(LayerPipelineStageAssignment):
    """The stage of a call of a layer; `node_index` counts the calls of a layer, from 0."""

    def __init__(self, layer: Any, node_index: int, pipeline_stage: int | None = None) -> None:
        super().__init__(layer, pipeline_stage)
        self._node_index = node_index

    @property
    def node_index(self) -> int:
        """The number of the call of the layer."""
        return self._node_index

    @property
    def inbound_layers(self) -> list[Any]:
        """The layers whose results the call takes."""
        return [maker for maker, _ in _makers(self._layer, self._node_index)]

    def __str__(self) -> str:
        return f"Layer: {self._layer.name} (node index {self._node_index}) Pipeline Stage: {self.pipeline_stage}"

    __repr__ = __str__


class FunctionalLayerPipelineStageAssignment(ModelLayerPipelineStageAssignment):
    """The stage of a call of a layer of a functional model."""


def _makers(operation: Any, node_index: int) -> list[tuple[Any, int]]:
    """What made the tensors that a call takes: operation and number of its call."""
    node = operation._inbound_nodes[node_index]
    return list(dict.fromkeys(tuple(each._keras_history[:2]) for each in node.input_tensors))


def post_order(model: Any) -> list[tuple[Any, int]]:
    """The calls of a functional model, without its inputs, each behind those whose results it takes."""
    found: dict[tuple[Any, int], None] = {}
    pending: list[tuple[tuple[Any, int], bool]] = [
        (tuple(each._keras_history[:2]), False) for each in reversed(keras.tree.flatten(model.outputs))
    ]
    given = {tuple(each._keras_history[:2]) for each in keras.tree.flatten(model.inputs)}
    while pending:
        call, ready = pending.pop()
        if call in found or call in given:
            continue
        if ready:
            found[call] = None
            continue
        pending.append((call, True))
        pending += [(each, False) for each in reversed(_makers(*call))]
    return list(found)


def noted_stages(model: Any) -> list[int] | None:
    """The stages that scopes gave the calls of a functional model; None where they gave none.

    Errors: `InputError` where some calls were made outside any.
    """
    calls = post_order(model)
    found = [getattr(operation, "_ipu_stages", {}).get(number) for operation, number in calls]
    if all(stage is None for stage in found):
        return None
    for (operation, _), stage in zip(calls, found, strict=True):
        if stage is None:
            raise InputError(
                f"the call of {operation.name!r} is in no PipelineStage, and others of {model.name!r} are",
                todo="put every call of a layer into a PipelineStage, or use set_pipeline_stage_assignment",
            )
    return [stage for stage in found if stage is not None]


def sequential_stages(model: Any, given: Any) -> list[int]:
    """A stage for each layer of a Sequential model. Errors: `InputError`, a `ValueError`."""
    layers = model.layers
    _check_list(given, SequentialLayerPipelineStageAssignment, len(layers), "layers", whole=True)
    for assignment, layer in zip(given, layers, strict=True):
        if isinstance(assignment, SequentialLayerPipelineStageAssignment) and assignment.layer is not layer:
            raise InputError(
                f"the assignment of {assignment.layer.name!r} stands where {layer.name!r} does",
                expected="the layers of the model, in order",
            )
    stages = _numbers(given, [layer.name for layer in layers])
    for place, stage in enumerate(stages):
        before = stages[place - 1] if place else 0
        if stage not in ((0,) if not place else (before, before + 1)):
            raise InputError(
                f"the layer {layers[place].name!r} is on stage {stage}, and the one before on {before}",
                expected="stage 0 first, and each layer on the stage of the last one or the next",
            )
    return stages


def functional_stages(model: Any, given: Any) -> list[int]:
    """A stage for each call of a functional model, in post-order. Errors: `InputError`, a `ValueError`."""
    calls = post_order(model)
    _check_list(given, ModelLayerPipelineStageAssignment, len(calls), "calls of layers", whole=False)
    for assignment, (operation, number) in zip(given, calls, strict=True):
        if assignment.layer is not operation or assignment.node_index != number:
            raise InputError(
                f"the assignment of {assignment.layer.name!r} (node index {assignment.node_index}) stands where "
                f"that of {operation.name!r} (node index {number}) does",
                expected="what get_pipeline_stage_assignment gives, in its order",
            )
    stages = _numbers(given, [operation.name for operation, _ in calls])
    check_order(calls, stages)
    return stages


def check_order(calls: Sequence[tuple[Any, int]], stages: Sequence[int]) -> None:
    """No number is skipped, and no call takes what a later stage makes."""
    if sorted(set(stages)) != list(range(max(stages) + 1)):
        raise InputError(f"the stages are {sorted(set(stages))}", expected="0, 1, 2… without a gap")
    known = dict(zip(calls, stages, strict=True))
    for call, stage in known.items():
        for maker in _makers(*call):
            if known.get(maker, 0) > stage:
                raise InputError(
                    f"{call[0].name!r} is on stage {stage} and takes what {maker[0].name!r} makes on {known[maker]}",
                    expected="stages that never step back along the flow of data",
                )


def _check_list(given: Any, kind: type, count: int, what: str, *, whole: bool) -> None:
    if not isinstance(given, list):
        raise InputError(
            f"pipeline_stage_assignment is {short(given)}, and is a {type(given).__name__}", expected="a list"
        )
    if len(given) != count:
        raise InputError(
            f"pipeline_stage_assignment is {short(given)}, which has "
            f"{things_text(len(given), 'entry')} for {count} {what}"
        )
    for each in given:
        if not isinstance(each, kind) and not (whole and type(each) is int):
            also = "whole numbers or " if whole else ""
            raise InputError(f"pipeline_stage_assignment holds {each!r}", expected=f"{also}{kind.__name__}s")


def _numbers(given: Sequence[Any], names: Sequence[str]) -> list[int]:
    found = []
    for each, name in zip(given, names, strict=True):
        stage = each if isinstance(each, int) else each.pipeline_stage
        if isinstance(stage, bool) or not isinstance(stage, int) or stage < 0:
            raise InputError(f"the stage of {name!r} is {stage!r}", expected="a whole number from 0")
        found.append(stage)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Stages of layers by name, the first of those on several; of these the calls, by name and number from 1."""

    of_layers: Mapping[str, int]
    of_calls: Mapping[tuple[str, int], int]

    @property
    def count(self) -> int:
        """How many there are."""
        return max([*self.of_layers.values(), *self.of_calls.values()]) + 1


def stages_of_calls(pairs: Sequence[tuple[Any, int]], devices: Sequence[int]) -> Stages:
    """The stages of calls of layers, in the order they are called in.

    Errors: `InputError` for a layer that is called on stages of several IPUs.
    """
    first: dict[str, int] = {}
    calls: dict[tuple[str, int], int] = {}
    counts: Counter[str] = Counter()
    for layer, stage in pairs:
        home = first.setdefault(layer.name, stage)
        if devices[home] != devices[stage]:
            raise InputError(
                f"the layer {layer.name!r} is called on stages {home} and {stage}, on IPUs {devices[home]} and "
                f"{devices[stage]}",
                expected="all calls of a shared layer on one IPU, where its weights are",
                todo=f"assign both calls to stage {home}, or map both stages to one IPU by device_mapping",
            )
        counts[layer.name] += 1
        calls[layer.name, counts[layer.name]] = stage
    several = {name for (name, _), stage in calls.items() if stage != first[name]}
    return Stages(of_layers=first, of_calls={call: stage for call, stage in calls.items() if call[0] in several})


def as_run(model: Any) -> list[tuple[Any, int]]:
    """The calls of a functional model in the order in which Keras makes them."""
    depths = sorted(model._nodes_by_depth, reverse=True)
    nodes = [node for depth in depths for node in model._nodes_by_depth[depth]]
    return [(node.operation, node.operation._inbound_nodes.index(node)) for node in nodes if not node.is_input]


def table(title: str, rows: Iterator[Sequence[str]], places: Sequence[float], line_length: int) -> Iterator[str]:
    """The lines of a summary: rows cut to columns that end at these shares of a line."""
    yield f'Model: "{title}"'
    yield "_" * line_length
    for number, row in enumerate(rows):
        line, end = "", 0
        for text, place in zip(row, places, strict=True):
            line = line[: max(end - 1, 0)].ljust(end) + text
            end = int(line_length * place)
        yield line[:line_length]
        yield ("=" if not number else "_") * line_length


__all__ = [
    "FunctionalLayerPipelineStageAssignment",
    "ModelLayerPipelineStageAssignment",
    "PipelineStage",
    "SequentialLayerPipelineStageAssignment",
    "StageError",
    "Stages",
    "as_run",
    "check_order",
    "functional_stages",
    "noted_stages",
    "post_order",
    "sequential_stages",
    "stages_of_calls",
    "table",
]
