"""From whatever names a model to a built one: live models, builder functions and ready models, in any precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.base.text import short
from workbench.engine.frontends.describe.checks import (
    check_call,
    check_dtype,
    check_example,
    check_model,
    check_no_layer,
    data_dtype,
    flattened,
    traced_control_flow,
)
from workbench.engine.frontends.describe.keras_layers import walk_layers
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.describe.unseeded import Draws
from workbench.engine.frontends.ready import ReadyModel, ready
from workbench.engine.frontends.step.own_step import has_own_step
from workbench.engine.frontends.step.precision import in_precision
from workbench.engine.frontends.step.without_weights import WEIGHT_SEED, build_without_weights
from workbench.engine.frontends.trace import jaxpr
from workbench.errors import InputError

PRECISIONS = ("float32", "float16", "mixed_float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A built model. `origin` is what says how it is compiled: the user's own where a copy of it cannot.

    `inputs` and `outputs` hold (name, shape, dtype) of each, flat; the batch may be None. `structure` and
    `target_structure` pack flat inputs and targets as the model takes them. `lazy`: the variables have no values.
    `loss` is the loss (and sentence) a ready model brings; `targets` its example targets' types, which
    `like_example` packs as the example is. `compared` says which outputs have targets, where not all have.
    """

    model: Any
    origin: Any
    inputs: tuple[tuple[str, tuple[int | None, ...], str], ...]
    outputs: tuple[tuple[str, tuple[int | None, ...], str], ...]
    structure: Callable[[Sequence[Any]], Any]
    target_structure: Callable[[Sequence[Any]], Any]
    lazy: bool = False
    loss: tuple[Any, str] | None = None
    targets: tuple[ArraySpec, ...] = ()
    like_example: Callable[[Sequence[Any]], Any] | None = None
    compared: tuple[bool, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in their order."""
        return tuple(name for name, _, _ in self.outputs)

    @property
    def output_names_compared(self) -> tuple[str, ...]:
        """The names of those that have targets."""
        return tuple(itertools.compress(self.output_names, self.compared)) if self.compared else self.output_names


def build(
    source: Any,
    *,
    precision: str | None = None,
    inputs: Sequence[Any] = (),
    batch_size: int | None = None,
    scaled: bool = True,
) -> Built:
    """Build what `source` names; a live model in another precision is copied, one that is not built is built.

    `batch_size` is that of a model that was only called, or told its shape: its calls may have any. `scaled`: a copy
    is compiled with Keras' own scaling of the loss, where Keras would.
    """
    check_precision(precision)
    if isinstance(source, str):
        source = ready(source)
    check_no_layer(source)
    loss, assumptions, lazy = None, [], False
    if isinstance(source, ReadyModel) or (callable(source) and not isinstance(source, keras.Model)):
        builder = source.builder if isinstance(source, ReadyModel) else source
        with traced_control_flow(building=True):
            model, lazy = build_without_weights(lambda: _with_variables(builder(), inputs), precision)
        origin = model
        if isinstance(source, ReadyModel):
            loss = source.loss
            model.name = source.name  # as it is asked for: results are called like that
        if lazy:
            assumptions.append(f"weights: initialised by the first run, with seed {WEIGHT_SEED}")
    else:
        with traced_control_flow(building=True):
            _build_by_example(source, inputs)
        check_model(source)
        origin = source
        model, said = in_precision(source, precision, scaled=scaled) if precision else (source, ())
        assumptions += said
        if model.compiled and not has_own_step(model):
            origin = model  # the copy is compiled as it was
    check_model(model)
    check_call(model)
    described = _describe_inputs(model, precision, inputs, batch_size)
    structure = _structure(model, inputs)
    with jaxpr.uninitialized_forgotten(where_it_fails=True):
        outputs, target_structure = _describe_outputs(model, described, structure)
    return Built(
        model=model,
        origin=origin,
        inputs=described,
        outputs=outputs,
        structure=structure,
        target_structure=target_structure,
        lazy=lazy,
        loss=loss,
        targets=_targets(inputs),
        like_example=_packer(inputs[1]) if len(inputs) > 1 else None,
        assumptions=tuple(assumptions),
    )


def _with_variables(model: Any, inputs: Sequence[Any]) -> Any:
    """What a builder gave; a model that was only told its shape makes its variables now, as it would in the builder."""
    if not isinstance(model, keras.Model) or hasattr(model, "operations") or isinstance(model, keras.Sequential):
        return model
    if all(layer.built for _, layer in walk_layers(model)) or not (inputs or (model.get_build_config() or {})):
        return model
    _describe_outputs(model, _describe_inputs(model, None, inputs), _structure(model, inputs))
    return model


def _build_by_example(model: Any, inputs: Sequence[Any]) -> None:
    """A live model that is not built gets its variables from the example inputs' types, as `fit` would make them."""
    if not inputs or not isinstance(model, keras.Model) or model.built or not model.layers:
        return
    check_call(model)
    flat = [keras.KerasTensor(shape, dtype) for _, shape, dtype in _describe_inputs(model, None, inputs)]
    with jaxpr.unseeded_draws(Draws([np.zeros(2, "uint32")])):
        model(_structure(model, inputs)(flat))


def check_precision(precision: Any) -> None:
    """An `InputError` for what is the name of no precision."""
    if precision is not None and not (isinstance(precision, str) and precision in PRECISIONS):
        raise InputError(f"precision is {precision!r}", expected="one of: " + ", ".join(PRECISIONS))


def unseeded_generator() -> Any:
    """Keras' own generator, for layers that name no seed."""
    return jaxpr.unseeded_generator()


def _describe_inputs(
    model: Any, precision: str | None, inputs: Sequence[Any], batch_size: int | None = None
) -> tuple[tuple[str, tuple[int | None, ...], str], ...]:
    if inputs:
        flat = flattened("inputs", inputs[0])
        for item in flat:
            check_example("inputs", item)
        examples = tuple(("", tuple(item.shape), dtype_name(data_dtype("x", item))) for item in flat)
        _check_taken(model, flat)
        return examples
    tensors = keras.tree.flatten(getattr(model, "inputs", None) or [])
    if not tensors:
        return _inputs_of_build(model, batch_size)
    half = precision == "float16"
    found = []
    for tensor in tensors:
        dtype = dtype_name(tensor.dtype)
        check_dtype(f"input {tensor.name!r}", tensor.dtype)
        shape = _in_batch(model, tensor.shape, batch_size)
        found.append((tensor.name, shape, "float16" if half and dtype == "float32" else dtype))
    return tuple(found)


def _check_taken(model: Any, given: Sequence[Any]) -> None:
    """Example inputs have the number and the shapes of those the model says it has."""
    found = [tuple(each.shape) for each in given]
    batch = found[0][0] if found and found[0] else None
    wanted = [_in_batch(model, each.shape, batch) for each in keras.tree.flatten(getattr(model, "inputs", None) or [])]
    fits = len(wanted) == len(found) and all(
        len(one) == len(other) and all(size is None or size == has for size, has in zip(one, other, strict=True))
        for one, other in zip(wanted, found, strict=True)
    )
    if wanted and not fits:
        raise InputError(
            f"inputs have shapes {short(found)}",
            expected=f"those of the model {model.name!r}: {short(wanted)}",
            todo="leave inputs out, and give batch_size=",
        )


def _inputs_of_build(model: Any, batch_size: int | None) -> tuple[tuple[str, tuple[int | None, ...], str], ...]:
    """The shapes a model was called with or told; their batch is an example, and another one may be asked for."""
    built = _built_shapes(model)
    if built is None:
        raise InputError(
            f"the model {model.name!r} does not know its input shapes",
            expected="a Sequential or functional model, or example inputs",
            todo="give an example of its input: wb.compile(model, jax.ShapeDtypeStruct((batch_size, ...), 'float32'))",
        )
    dtype = str(model.compute_dtype)
    tensors = keras.tree.map_shape_structure(lambda shape: keras.KerasTensor(shape, dtype), built)
    shapes = [tuple(tensor.shape) for tensor in keras.tree.flatten(tensors)]
    return tuple(("", _in_batch(model, shape, batch_size), dtype) for shape in shapes)


def _in_batch(model: Any, shape: Sequence[int | None], batch_size: int | None) -> tuple[int | None, ...]:
    """The shape in the batch that is asked for, where the model's own is only that of its first call.

    Keras keeps the batch that a Sequential model without an Input, or a subclassed one, was first called with, and
    calls it with any; layers with a state for each sample have none but theirs.
    """
    first_call = isinstance(model, keras.Sequential) or not hasattr(model, "operations")
    kept = any(getattr(layer, "stateful", False) for _, layer in walk_layers(model))
    free = batch_size is not None and bool(shape) and shape[0] is not None and first_call and not kept
    return (batch_size, *shape[1:]) if free else tuple(shape)


def _built_shapes(model: Any) -> Any:
    """The shape, or the nested shapes, of what a model was built for; None where it does not know."""
    shapes = (model.get_build_config() or {}).get("input_shape")
    return None if shapes is None else _plain(shapes)


def _plain(shapes: Any) -> Any:
    """Nested shapes in plain dictionaries and lists; Keras keeps them in containers that JAX does not take apart."""
    if isinstance(shapes, Mapping):
        return {name: _plain(each) for name, each in shapes.items()}
    nested = any(isinstance(each, Mapping | list | tuple) for each in shapes)
    return [_plain(each) for each in shapes] if nested else tuple(shapes)


def _describe_outputs(
    model: Any, inputs: Sequence[tuple[str, tuple[int | None, ...], str]], structure: Callable[[Sequence[Any]], Any]
) -> tuple[tuple[tuple[str, tuple[int | None, ...], str], ...], Callable[[Sequence[Any]], Any]]:
    """The flat outputs, and how targets that correspond to them are packed."""
    if getattr(model, "outputs", None):
        tree = model.outputs[0] if isinstance(model, keras.Sequential) else model.output
    else:
        with jaxpr.unseeded_draws(Draws([np.zeros(2, "uint32")])):
            tree = model.compute_output_spec(structure([keras.KerasTensor(shape, dtype) for _, shape, dtype in inputs]))
    names = list(tree) if isinstance(tree, dict) else list(getattr(model, "output_names", ()))
    if isinstance(tree, dict):
        names.sort()
    flat = keras.tree.flatten(tree)
    if len(names) != len(flat):
        names = [str(i) for i in range(len(flat))]
    described = tuple((name, tuple(leaf.shape), dtype_name(leaf.dtype)) for name, leaf in zip(names, flat, strict=True))
    return described, _packer(tree)


def _packer(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """Pack flat values as a tree is."""
    shape = keras.tree.map_structure(lambda leaf: 0, tree)
    return lambda values: keras.tree.pack_sequence_as(shape, list(values))


def _structure(model: Any, inputs: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Pack flat inputs as the model's call takes them."""
    if inputs:
        shape: Any = keras.tree.map_structure(lambda leaf: 0, inputs[0])
    elif getattr(model, "inputs", None):
        source = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
        shape = keras.tree.map_structure(lambda leaf: 0, source)
    else:
        built = _built_shapes(model)
        shape = 0 if built is None else keras.tree.map_shape_structure(lambda each: 0, built)
    return lambda values: keras.tree.pack_sequence_as(shape, list(values))


def _targets(inputs: Sequence[Any]) -> tuple[ArraySpec, ...]:
    """Types of the example targets, flat."""
    found = []
    for y in keras.tree.flatten(inputs[1]) if len(inputs) > 1 else ():
        if y is None:  # of an output without a loss
            continue
        check_example("y", y)
        dtype = dtype_name(jax.dtypes.canonicalize_dtype(data_dtype("y", y)))
        found.append(ArraySpec(name="y", shape=tuple(y.shape), dtype=dtype))
    return tuple(found)
