"""Which pipeline stage each layer is on, from what users write: a stage per layer, or the layers to cut after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import keras

from workbench.base.units import plural, things_text
from workbench.engine.frontends.describe.checks import check_model
from workbench.engine.frontends.describe.name_stack import Place
from workbench.errors import InputError

Calls: TypeAlias = Mapping[tuple[str, int], int]
"""Layers that are called on several stages: name and number of the call, from 1, to the stage of the call."""

_TODO = "give one stage per layer, such as [0, 0, 1, 1], or the names of the layers to cut after"


def stage_layers(model: Any) -> list[Any]:
    """The layers an assignment speaks of: those of the model, in order, without its inputs."""
    return [layer for layer in model.layers if not isinstance(layer, keras.layers.InputLayer)]


def assign_stages(model: Any, stages: Any) -> dict[str, int]:
    """Layer name to stage, from 0; `stages` may be a list, or anything with a list as its `stages`.

    Errors: `InputError` for a wrong length, an unknown layer, and stages that skip a number or step back.
    """
    wanted = list(getattr(stages, "stages", stages))
    if not wanted:
        raise InputError("stages is empty", expected="at least one stage", todo=_TODO)
    layers = stage_layers(model)
    if all(isinstance(item, str) for item in wanted):
        numbers = _cut_after(layers, wanted)
    elif all(isinstance(item, int) and not isinstance(item, bool) for item in wanted):
        numbers = _per_layer(model, layers, wanted)
    else:
        raise InputError(f"stages is {wanted!r}", expected="whole numbers or layer names", todo=_TODO)
    return {layer.name: number for layer, number in zip(layers, numbers, strict=True)}


def even_stages(source: Any, count: int, built: bool = True) -> list[int]:
    """A stage per layer, each stage with as many layers as the next, one more or less.

    `built`: whether the model must be; one with example inputs is built when it is traced.
    """
    builder = getattr(source, "builder", source)
    if isinstance(source, str):
        from workbench.engine.frontends.ready import ready

        builder = ready(source).builder
    model = source if hasattr(source, "stateless_call") else builder()
    if built or not callable(getattr(model, "stateless_call", None)):
        check_model(model)
    return evenly(len(stage_layers(model)), count)


def evenly(layers: int, count: int) -> list[int]:
    """The stage of each of so many layers, in order."""
    if layers < count:
        raise InputError(
            f"{things_text(layers, 'layer')} cannot be {count} {plural(count, 'stage')}",
            expected=f"at most {things_text(layers, 'stage')}",
        )
    return [place * count // layers for place in range(layers)]


def _cut_after(layers: Sequence[Any], names: Sequence[str]) -> list[int]:
    known = [layer.name for layer in layers]
    for name in names:
        if name not in known:
            raise InputError(f"there is no layer {name!r} to cut after", expected="one of: " + ", ".join(known))
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputError(f"stages names the layer {twice!r} twice", expected="each layer to cut after once", todo=_TODO)
    if known[-1] in names:
        raise InputError(f"nothing follows the layer {known[-1]!r}", expected="cuts between layers", todo=_TODO)
    stage, numbers = 0, []
    for name in known:
        numbers.append(stage)
        stage += name in names
    return numbers


def _per_layer(model: Any, layers: Sequence[Any], numbers: Sequence[int]) -> list[int]:
    """Assignments may count the input layers or not."""
    if len(numbers) == len(model.layers) != len(layers):
        kept = zip(model.layers, numbers, strict=True)
        numbers = [number for layer, number in kept if not isinstance(layer, keras.layers.InputLayer)]
    if len(numbers) != len(layers):
        raise InputError(
            f"stages has {things_text(len(numbers), 'entry')} for {things_text(len(layers), 'layer')}",
            expected=f"one stage for each of: {', '.join(layer.name for layer in layers)}",
            todo=_TODO,
        )
    if sorted(set(numbers)) != list(range(max(numbers) + 1)):
        raise InputError(f"stages uses the numbers {sorted(set(numbers))}", expected="0, 1, 2… without a gap")
    return list(numbers)


def outermost(path: str) -> str:
    """The outermost layer of a layer path."""
    return path.split("/", 1)[0]


def stage_of_path(path: str, stages: Mapping[str, int]) -> int | None:
    """The stage of a layer path: that of its outermost layer; None for what no stage was given for."""
    return stages.get(outermost(path))


def stage_of_place(place: Place, stages: Mapping[str, int], calls: Calls) -> int | None:
    """The stage of what is computed at a place: of a layer on several, that of its call."""
    shared = calls.get((outermost(place.layer), place.outer_call))
    return stage_of_path(place.layer, stages) if shared is None else shared
