"""The targets of a training step: one for each output that a loss or a metric compares with something."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.base.units import things_text
from workbench.engine.frontends.describe.checks import known_shape
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.engine.frontends.step.building import Built
from workbench.engine.frontends.step.losses import Recipe, check_target, is_open, target_spec
from workbench.engine.frontends.step.without_loss import has_own_loss
from workbench.errors import InputError

ASSUMED_SIZE = (
    "targets: {0.name} is {0}, as long as the output, because no example was given and the loss takes other sizes too; "
    "wb.compile(model, x, y) takes those of y"
)


def with_targets(built: Built, recipe: Recipe) -> Built:
    """The model with targets only where they are compared, as Keras takes none for an output without loss and metric.

    A step or a loss of the model's own may read any, and is given them as the example holds them.
    """
    if _by_its_own(built, recipe):
        return built if built.like_example is None else replace(built, target_structure=built.like_example)
    losses = _losses(built, recipe.loss)
    metrics = _with_metrics(built) if recipe.compiled else set()
    names = built.output_names
    kept = tuple(loss is not None or name in metrics for loss, name in zip(losses, names, strict=True))
    if all(kept) or not any(kept):
        return built

    def pack(values: Sequence[Any]) -> Any:
        given = iter(values)
        return built.target_structure([next(given) if each else None for each in kept])

    whole = len(built.targets) == len(kept)
    targets = tuple(itertools.compress(built.targets, kept)) if whole else built.targets
    return replace(built, target_structure=pack, targets=targets, compared=kept)


def _by_its_own(built: Built, recipe: Recipe) -> bool:
    """Whether a step or a loss of the model's own reads the targets."""
    return recipe.own_step or (recipe.compiled and has_own_loss(built.model))


def _with_metrics(built: Built) -> set[str]:
    """Names of the outputs that the model was compiled with metrics of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a loss that is a lambda would be stored as code; only the metrics are read
        said = built.origin.get_compile_config() or {}
    names, found = built.output_names, set()
    for given in filter(None, (said.get("metrics"), said.get("weighted_metrics"))):
        if not isinstance(given, Mapping) and len(given) != len(names):
            return set(names)
        pairs = given.items() if isinstance(given, Mapping) else zip(names, given, strict=True)
        found |= {name for name, each in pairs if each}
    return found


def target_specs(built: Built, recipe: Recipe, batch_size: int) -> tuple[list[ArraySpec], list[str]]:
    """The targets: like the examples that were given, else as the losses take them; and what was assumed of those.

    Errors: `InputError` for examples that are not one for each, or that a loss cannot compare with its output.
    """
    if not built.targets and not recipe.targets:
        return [], []
    several = len(built.outputs) > 1
    compared = built.compared or [True] * len(built.outputs)
    outputs = list(itertools.compress(built.outputs, compared))
    losses = list(itertools.compress(_losses(built, recipe.loss), compared))
    names = [f"y[{name!r}]" for name, _, _ in outputs] if several else ["y"]
    if built.targets and len(built.targets) != len(names):
        if not _by_its_own(built, recipe):
            raise _other_targets(built, names)
        return [_like(each, f"y[{place}]", batch_size) for place, each in enumerate(built.targets)], []
    if built.targets:
        targets = [_like(each, name, batch_size) for each, name in zip(built.targets, names, strict=True)]
        if not recipe.own_step:
            _check_targets(losses, targets, outputs)
        return targets, []
    specs, assumed = [], []
    for loss, label, (_, shape, dtype) in zip(losses, names, outputs, strict=True):
        output = ArraySpec(name=label, shape=known_shape("the output", (None, *shape[1:]), batch_size), dtype=dtype)
        target = target_spec(loss, output, label)
        specs.append(target)
        if not _by_its_own(built, recipe) and is_open(loss, target, output):  # else the sentence of its own says it
            assumed.append(ASSUMED_SIZE.format(target))
    return specs, assumed


def _like(example: ArraySpec, name: str, batch_size: int) -> ArraySpec:
    return replace(example, name=name, shape=(batch_size, *example.shape[1:]))


def _other_targets(built: Built, names: Sequence[str]) -> InputError:
    """What to say of examples of targets that are not as many as are compared."""
    count = len(built.targets)
    return InputError(
        f"{things_text(count, 'example')} of targets {'was' if count == 1 else 'were'} given",
        expected=f"one for each output that is compared: {', '.join(names)}" if len(names) > 1 else "one, y",
        todo="give such examples, wb.compile(model, x, y), or give batch_size= and none",
    )


def _check_targets(losses: Sequence[Any], targets: Sequence[ArraySpec], outputs: Sequence[Any]) -> None:
    for loss, target, (name, shape, dtype) in zip(losses, targets, outputs, strict=True):
        known = tuple(size for size in shape[1:] if size is not None)
        if len(known) == len(shape[1:]):
            check_target(loss, target, ArraySpec(name=name, shape=(*target.shape[:1], *known), dtype=dtype))


def _losses(built: Built, loss: Any) -> list[Any]:
    """The loss of each flat output."""
    if isinstance(loss, Mapping):
        return [loss.get(name) for name, _, _ in built.outputs]
    return list(loss) if isinstance(loss, (list, tuple)) else [loss] * len(built.outputs)
