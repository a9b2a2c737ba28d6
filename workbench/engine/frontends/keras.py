"""Keras models become a `Source`: a whole training step, or inference, of a built model, a builder or a ready name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import keras

from workbench.engine.frontends import building
from workbench.engine.frontends.building import Built
from workbench.engine.frontends.checks import (
    check_backend,
    check_batch_size,
    check_model,
    known_shape,
    traced_control_flow,
)
from workbench.engine.frontends.jaxpr import graph_from_jaxpr
from workbench.engine.frontends.keras_layers import layer_classes, numbered_calls, slot_layer, variable_layers
from workbench.engine.frontends.losses import Recipe, find_recipe, target_spec
from workbench.engine.frontends.source import ArraySpec, Source
from workbench.engine.frontends.training import Step, Variables
from workbench.engine.graph import Input, Output, Role

Mode = Literal["training", "inference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A built model with everything a trace of it needs."""

    built: Built
    mode: Mode
    batch_size: int
    variables: Variables
    specs: tuple[ArraySpec, ...]
    inputs: tuple[Input, ...]
    recipe: Recipe | None
    structure: Callable[[Sequence[Any]], Any]
    assumptions: tuple[str, ...]

    @property
    def model(self) -> Any:
        """The Keras model."""
        return self.built.model

    def types(self) -> list[jax.ShapeDtypeStruct]:
        """Types of the variables and data, in the order of a step's arguments."""
        held = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in self.variables.all]
        return held + [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in self.specs]

    def scope(self) -> AbstractContextManager[Any]:
        """Traces of models without weights happen inside the scope they were built in."""
        return keras.StatelessScope(initialize_variables=False) if self.built.lazy else nullcontext()


def find_mode(model: Any, mode: str | None, optimizer: Any) -> Mode:
    """Training when the model is compiled with an optimizer or one is given, else inference."""
    if mode is not None:
        return "training" if mode == "training" else "inference"
    trained = optimizer is not None or (model.compiled and model.optimizer is not None)
    return "training" if trained else "inference"


def _variable_role(variable: Any, trainable: bool) -> Role:
    if variable.path.endswith("seed_generator_state"):
        return "seed"
    return "parameter" if trainable else "state"


def describe_variables(model: Any, variables: Variables) -> tuple[Input, ...]:
    """Names, roles and layers of the variables of a step."""
    layers = variable_layers(model)
    trainable = [(v.path, layers.get(id(v), "")) for v in variables.trainable]
    described = [
        Input(name=v.path, role=_variable_role(v, trained), layer=layers.get(id(v), ""))
        for group, trained in ((variables.trainable, True), (variables.state, False))
        for v in group
    ]
    slots = [Input(name=v.path, role="optimizer", layer=slot_layer(v, trainable)) for v in variables.slots]
    return (*described, *slots)


def input_specs(built: Built, batch_size: int | None) -> list[ArraySpec]:
    """The model's inputs with every dimension known; a float16 model takes float16 data."""
    several = len(built.inputs) > 1
    specs = []
    for i, (name, shape, dtype) in enumerate(built.inputs):
        label = f"x[{name or i!r}]" if several else "x"
        specs.append(ArraySpec(name=label, shape=known_shape(label, shape, batch_size), dtype=dtype))
    return specs


def _target_specs(built: Built, recipe: Recipe, batch_size: int) -> list[ArraySpec]:
    if built.target is not None:
        return [replace(built.target, shape=(batch_size, *built.target.shape[1:]))]
    losses = recipe.loss if isinstance(recipe.loss, (list, tuple)) else [recipe.loss] * len(built.outputs)
    specs = []
    for loss, (shape, dtype) in zip(losses, built.outputs, strict=True):
        output = ArraySpec(name="y", shape=known_shape("the output", (None, *shape[1:]), batch_size), dtype=dtype)
        specs.append(target_spec(loss, output))
    return specs


def prepare(
    source: Any,
    *,
    batch_size: int | None = None,
    mode: str | None = None,
    optimizer: Any = None,
    loss: Any = None,
    precision: str | None = None,
    inputs: Sequence[Any] = (),
) -> Prepared:
    """Build the model, choose mode, optimizer and loss, and describe every array of the step."""
    check_backend()
    check_batch_size(batch_size)
    built = building.build(source, precision=precision, inputs=inputs)
    check_model(built.model)
    chosen = find_mode(built.origin, mode, optimizer)
    specs = input_specs(built, batch_size)
    size = specs[0].shape[0] if specs and specs[0].shape else 1
    variables = Variables(list(built.model.trainable_variables), list(built.model.non_trainable_variables))
    recipe = None
    roles: list[Role] = ["input"] * len(specs)
    if chosen == "training":
        recipe = find_recipe(built.model, optimizer, loss, built.origin, built.loss)
        with keras.StatelessScope(initialize_variables=False) if built.lazy else nullcontext():
            if not recipe.optimizer.built:
                recipe.optimizer.build(variables.trainable)
        building.forget_unset(recipe.optimizer.variables if built.lazy else ())
        variables = replace(variables, slots=list(recipe.optimizer.variables))
        targets = _target_specs(built, recipe, size)
        specs += targets
        roles += ["target"] * len(targets)
    described = describe_variables(built.model, variables)
    data = tuple(Input(name=spec.name, role=role) for spec, role in zip(specs, roles, strict=True))
    return Prepared(
        built=built, mode=chosen, batch_size=size, variables=variables, specs=tuple(specs),
        inputs=(*described, *data), recipe=recipe, structure=built.structure,
        assumptions=(*built.assumptions, *(recipe.assumptions if recipe else ())),
    )  # fmt: skip


def _step(prepared: Prepared) -> Step:
    count = sum(item.role == "input" for item in prepared.inputs)
    return Step(prepared.model, prepared.variables, prepared.structure, count, prepared.recipe)


def trace_step(prepared: Prepared, *extra: jax.ShapeDtypeStruct) -> tuple[Step, Any]:
    """Trace the step; the step (with what tracing found out) and its closed jaxpr."""
    step = _step(prepared)
    with prepared.scope(), numbered_calls(prepared.model), traced_control_flow():
        closed = jax.make_jaxpr(step)(*prepared.types(), *extra)
    return step, closed


def _outputs(prepared: Prepared, step: Step, closed: Any) -> tuple[Output, ...]:
    described = prepared.inputs
    updates = [Output(name=described[i].name, role="update", updates=i) for i in step.updated]
    if prepared.mode == "training":
        head = [Output(name="loss", role="loss"), *(Output(name=name, role="metric") for name in step.metrics)]
    else:
        count = len(closed.jaxpr.outvars) - len(updates)
        head = [Output(name="output" if count == 1 else f"output_{i}") for i in range(count)]
    return (*head, *updates)


def trace_keras(
    model: Any,
    batch_size: int | None = None,
    mode: str | None = None,
    *,
    optimizer: Any = None,
    loss: Any = None,
    precision: str | None = None,
    stages: Any = None,
    gradient_accumulation_steps: int = 1,
    inputs: Sequence[Any] = (),
) -> Source:
    """Trace a Keras model, a function that builds one, a ready name or a `ReadyModel` (arguments as `wb.compile`).

    `inputs` gives example arrays or types for models that do not know their own input shapes.
    Errors: `InputError` for everything the model or the arguments lack.
    """
    prepared = prepare(
        model, batch_size=batch_size, mode=mode, optimizer=optimizer, loss=loss, precision=precision, inputs=inputs
    )
    step, closed = trace_step(prepared)
    graph = graph_from_jaxpr(
        closed, prepared.inputs, _outputs(prepared, step, closed), name=prepared.model.name,
        batch_size=prepared.batch_size, mode=prepared.mode, layers=layer_classes(prepared.model),
        assumptions=prepared.assumptions,
    )  # fmt: skip
    tree = step.tree
    return Source(
        graph=graph, specs=prepared.specs, jaxpr=closed, compute=_computer(closed),
        weighted=_weighted(prepared) if prepared.recipe else None,
        variables=(*prepared.variables.all, *(None for _ in prepared.specs)),
        pack=_packer(tree, prepared.mode), unpack=keras.tree.flatten,
        model=prepared.model, optimizer=prepared.recipe.optimizer if prepared.recipe else None,
        lazy=prepared.built.lazy,
    )  # fmt: skip


def _packer(tree: Any, mode: str) -> Callable[[Sequence[Any]], Any]:
    structure = keras.tree.map_structure(lambda leaf: 0, tree) if mode == "inference" else None
    return lambda values: keras.tree.pack_sequence_as(structure, list(values))


def _computer(closed: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))
    return lambda values: compiled(*values)


def _weighted(prepared: Prepared) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
    step = _step(prepared)
    compiled = jax.jit(lambda *arrays: step(*arrays))

    def compute(values: Sequence[Any], weight: Any) -> Sequence[Any]:
        with prepared.scope():
            return compiled(*values, weight)  # type: ignore[no-any-return]

    return compute
