"""A model made ready for tracing: built, its mode, optimizer and loss chosen, every array of its step described."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import keras

from workbench.engine.frontends.describe.checks import (
    check_backend,
    check_batch_size,
    check_model,
    known_shape,
    traced_control_flow,
)
from workbench.engine.frontends.describe.keras_layers import slot_layer, variable_layers
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.describe.unseeded import SessionState
from workbench.engine.frontends.step import building
from workbench.engine.frontends.step.abstract_call import abstract_call
from workbench.engine.frontends.step.building import Built
from workbench.engine.frontends.step.losses import (
    OWN_STEP,
    Recipe,
    find_recipe,
    fresh_optimizer,
    steps_of_update,
)
from workbench.engine.frontends.step.precision import SCALED, UNSCALED
from workbench.engine.frontends.step.targets import target_specs, with_targets
from workbench.engine.frontends.step.training import TracedStep, Variables
from workbench.engine.frontends.step.without_loss import OF_INPUTS, OWN_LOSS, adds_losses, measures_targets
from workbench.engine.frontends.step.without_weights import without_values
from workbench.engine.graph import Input, Role
from workbench.errors import InputError

SAMPLE_WEIGHT = "sample_weight"

Mode = Literal["training", "inference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelToTrace:
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
    replicas: int = 1
    norm_members: int = 1  # replicas that share batch statistics
    draws: int = 0  # draws of a step that name no seed

    @property
    def model(self) -> Any:
        """The Keras model."""
        return self.built.model

    @property
    def calls_per_update(self) -> int:
        """Calls of the step to a weight update."""
        return 1 if self.recipe is None else steps_of_update(self.recipe.optimizer)

    def types(self) -> list[jax.ShapeDtypeStruct]:
        """Types of the variables and data, in the order of a step's arguments."""
        held = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in self.variables.all]
        return held + [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in self.specs]

    @property
    def weight(self) -> ArraySpec:
        """The sample weights: a column for each of several outputs that have targets."""
        outputs = len(self.built.output_names_compared)
        shape = (self.batch_size,) if outputs == 1 else (self.batch_size, outputs)
        return ArraySpec(name=SAMPLE_WEIGHT, shape=shape, dtype="float32")

    def scope(self) -> AbstractContextManager[Any]:
        """Traces of models without weights happen inside the scope they were built in."""
        return keras.StatelessScope(initialize_variables=False) if self.built.lazy else nullcontext()


def find_mode(model: Any, mode: str | None, optimizer: Any) -> Mode:
    """Training when the model is compiled with an optimizer or one is given, else inference."""
    if mode not in (None, "training", "inference"):
        raise InputError(f"mode is {mode!r}", expected="'training', 'inference' or None")
    if mode is not None:
        return "training" if mode == "training" else "inference"
    trained = optimizer is not None or (model.compiled and model.optimizer is not None)
    return "training" if trained else "inference"


def describe_variables(model: Any, variables: Variables) -> tuple[Input, ...]:
    """Names, roles and layers of the variables of a step."""
    layers = variable_layers(model)
    trainable = [(v.path, layers.get(v, "")) for v in variables.trainable]
    described = [
        _described(v, trained, layers.get(v, ""))
        for group, trained in ((variables.trainable, True), (variables.state, False))
        for v in group
    ]
    # Keras counts optimizers and seed generators in their names; without that, equal models have equal graphs.
    slots = [
        Input(name=f"optimizer/{v.path.split('/', 1)[-1]}", role="optimizer", layer=slot_layer(v, trainable))
        for v in variables.slots
    ]
    return tuple(_named_apart([*described, *slots]))


def _described(variable: Any, trained: bool, layer: str) -> Input:
    if variable.path.endswith("seed_generator_state"):
        return Input(name=f"{layer}/seed", role="seed", layer=layer)
    return Input(name=variable.path, role="parameter" if trained else "state", layer=layer)


def _named_apart(described: Sequence[Input]) -> Iterator[Input]:
    """Number the names that layers of nested models share."""
    seen: Counter[str] = Counter()
    for item in described:
        seen[item.name] += 1
        yield item if seen[item.name] == 1 else replace(item, name=f"{item.name}#{seen[item.name]}")


def input_specs(built: Built, batch_size: int | None) -> list[ArraySpec]:
    """The model's inputs with every dimension known; a float16 model takes float16 data."""
    several = len(built.inputs) > 1
    specs = []
    for i, (name, shape, dtype) in enumerate(built.inputs):
        label = f"x[{name or i!r}]" if several else "x"
        specs.append(ArraySpec(name=label, shape=known_shape(label, shape, batch_size), dtype=dtype))
    return specs


def _with_known_outputs(built: Built, specs: Sequence[ArraySpec]) -> Built:
    """The sizes that outputs have in this batch, where Keras leaves others open than that of the batch."""
    if all(size is not None for _, shape, _ in built.outputs for size in shape[1:]):
        return built
    shapes = abstract_call(built.model, built.structure, specs).shapes
    known = ((name, shape, dtype) for (name, _, dtype), shape in zip(built.outputs, shapes, strict=True))
    return replace(built, outputs=tuple(known))


def _with_slots(recipe: Recipe, trainable: Sequence[Any], lazy: bool) -> Recipe:
    """The recipe with its optimizer built, without values if the model has none.

    Optimizers that make a variable of a number, as Nadam does, cannot be built inside the scope and are built anew.
    """
    if recipe.optimizer.built:
        return recipe
    if lazy:
        try:
            with without_values():
                recipe.optimizer.build(trainable)
        except ValueError:
            recipe = replace(recipe, optimizer=fresh_optimizer(recipe.optimizer))
    if not recipe.optimizer.built:
        recipe.optimizer.build(trainable)
    return recipe


def _of_inputs_alone(recipe: Recipe, built: Built, variables: Variables, specs: Sequence[ArraySpec]) -> Recipe:
    """The recipe without targets where a step or a loss of the model's own does without, as `fit(x)` would have it."""
    own = next((each for each in (OWN_STEP, OWN_LOSS) if each in recipe.assumptions), "")
    if not own or measures_targets(built.origin):
        return recipe
    alone = replace(recipe, targets=False)
    step = TracedStep(built.model, variables, built.structure, inputs=len(specs), recipe=alone, targets=0)
    types = [jax.ShapeDtypeStruct(tuple(each.shape), each.dtype) for each in (*variables.all, *specs)]
    scope = keras.StatelessScope(initialize_variables=False) if built.lazy else nullcontext()
    try:
        with scope, traced_control_flow():
            jax.eval_shape(step, *types)
    except Exception:  # whatever somebody else's code raises of targets that are not there
        return recipe
    said = OF_INPUTS.format("train_step" if recipe.own_step else "compute_loss")
    return replace(alone, assumptions=tuple(said if each == own else each for each in recipe.assumptions))


def _check_trained(model: Any, variables: Variables) -> None:
    if not variables.trainable:
        raise InputError(
            f"the model {model.name!r} has no weights to train",
            expected="at least one trainable weight",
            todo="set layer.trainable = True, or compile with mode='inference'",
        )


def prepare(
    source: Any,
    *,
    batch_size: int | None = None,
    mode: str | None = None,
    optimizer: Any = None,
    loss: Any = None,
    precision: str | None = None,
    inputs: Sequence[Any] = (),
    staged: bool = False,
) -> ModelToTrace:
    """Build the model, choose mode, optimizer and loss, and describe every array of the step.

    `staged`: each stage updates its own weights, so that no scaling of the loss that nobody asked for ties them.
    """
    check_backend()
    check_batch_size(batch_size)
    built = building.build(
        source, precision=precision, inputs=inputs, batch_size=batch_size, scaled=not staged or optimizer is not None
    )
    check_model(built.model)
    chosen = find_mode(built.origin, mode, optimizer)
    specs = input_specs(built, batch_size)
    size = specs[0].shape[0] if specs and specs[0].shape else 1
    variables = Variables(list(built.model.trainable_variables), list(built.model.non_trainable_variables))
    recipe = None
    roles: list[Role] = ["input"] * len(specs)
    if chosen == "training":
        built = _with_known_outputs(built, specs)
        _check_trained(built.model, variables)
        recipe = find_recipe(
            built.model,
            optimizer,
            loss,
            built.origin,
            built.loss,
            built.output_names,
            functools.partial(adds_losses, built.model, built.structure, tuple(specs)),
        )
        recipe = _with_slots(recipe, variables.trainable, built.lazy)
        variables = replace(variables, slots=list(recipe.optimizer.variables))
        if not built.targets:
            recipe = _of_inputs_alone(recipe, built, variables, specs)
        built = with_targets(built, recipe)
        targets, assumed = target_specs(built, recipe, size)
        recipe = replace(recipe, assumptions=(*recipe.assumptions, *assumed))
        specs += targets
        roles += ["target"] * len(targets)
    described = describe_variables(built.model, variables)
    data = tuple(Input(name=spec.name, role=role) for spec, role in zip(specs, roles, strict=True))
    return ModelToTrace(
        built=built,
        mode=chosen,
        batch_size=size,
        variables=variables,
        specs=tuple(specs),
        inputs=(*described, *data),
        recipe=recipe,
        structure=built.structure,
        assumptions=_assumed(built, recipe, its_own=optimizer is None),
    )


def _assumed(built: Built, recipe: Recipe | None, *, its_own: bool) -> tuple[str, ...]:
    """What was assumed; of the optimizer of a copy in another precision only where the step is trained by `its_own`."""
    if recipe is None or not its_own:
        built = replace(built, assumptions=tuple(each for each in built.assumptions if each not in (SCALED, UNSCALED)))
    return (*built.assumptions, *(recipe.assumptions if recipe else ()))


def new_step(prepared: ModelToTrace) -> TracedStep:
    """The step of a prepared model, not traced yet."""
    return TracedStep(
        prepared.model,
        prepared.variables,
        prepared.structure,
        inputs=sum(item.role == "input" for item in prepared.inputs),
        recipe=prepared.recipe,
        targets=sum(item.role == "target" and item.name != SAMPLE_WEIGHT for item in prepared.inputs),
        target_structure=prepared.built.target_structure,
        replicas=prepared.replicas,
        draws=prepared.draws,
    )


def with_draws(prepared: ModelToTrace, draws: int) -> ModelToTrace:
    """The same with Keras' own generator among the variables, for so many draws of a step."""
    if draws <= prepared.draws:
        return prepared
    held, variables = len(prepared.variables.all), prepared.variables
    inputs = prepared.inputs
    if not variables.unseeded:
        variables = replace(variables, unseeded=[SessionState(building.unseeded_generator)])
        inputs = (*inputs[:held], Input(name="unseeded/seed", role="seed"), *inputs[held:])
    return replace(prepared, variables=variables, inputs=inputs, draws=draws)


def packer(tree: Any, mode: str) -> Callable[[Sequence[Any]], Any]:
    """Flat outputs back into the structure the model returns."""
    structure = keras.tree.map_structure(lambda leaf: 0, tree) if mode == "inference" else None
    return lambda values: keras.tree.pack_sequence_as(structure, list(values))
