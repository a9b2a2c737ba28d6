"""A live Keras model in another precision: what the function that built it would have given under that policy.

Keras fixes a layer's policy when the layer is made, so a model is made again from its configuration. While that is
read, every layer that took the policy in force says the wanted one; so do layers inside wrappers, cells and nested
models, whose configurations are written by what holds them.
"""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import keras

from workbench.base.identity import ByIdentity, each_once
from workbench.base.units import things_text
from workbench.engine.frontends.describe.keras_layers import walk_layers
from workbench.engine.frontends.step.losses import fresh_optimizer
from workbench.engine.frontends.step.own_step import has_own_step
from workbench.engine.frontends.step.without_weights import build_without_weights
from workbench.engine.frontends.trace import jaxpr
from workbench.errors import InputError

NAMED = 5  # layers named in one sentence


def in_precision(model: Any, precision: str, *, scaled: bool = True) -> tuple[Any, tuple[str, ...]]:
    """The model in another precision, with its weights and compiled alike; and the sentences that say so.

    It is the model itself when every layer has that precision or another policy of its own.
    Errors: `InputError` for a model that Keras cannot make again, or makes otherwise.
    """
    try:
        changed = [layer for layer in _with_model(model, _following(model)) if layer.dtype_policy.name != precision]
        copied = _copied(model, changed, precision, scaled=scaled) if changed else model
    except Exception as error:  # whatever the configurations of other people's layers raise
        raise InputError(
            f"the model {model.name!r} cannot be copied into {precision}: {error}",
            expected="a model whose layers can be made from their configurations; of classes of your own, with a "
            "get_config that gives every argument, and an __init__ that hands the others on (**more)",
            todo=f"build it under keras.config.set_dtype_policy({precision!r}) and leave precision= out",
        ) from error
    said = [f"precision: run trains a {precision} copy of {model.name!r}, not the model itself"] if changed else []
    if changed and _is_wrapped(model, copied):
        said.append(SCALED if scaled else UNSCALED)
    return copied, (*said, *_own_policies(copied, precision))


def _copied(model: Any, changed: Sequence[Any], precision: str, *, scaled: bool) -> Any:
    if not _is_network(model) and not all(layer.built for _, layer in walk_layers(model)):
        model.build_from_config(model.get_build_config())  # its shape was told, which alone makes no variables
    with _saying(changed, precision), _findable(model):
        copied, _ = build_without_weights(lambda: _again(model), precision)
    _check(model, copied, changed, precision)
    _carry_over(model, copied)
    _compile_alike(model, copied, scaled=scaled)
    return copied


def _own_policies(model: Any, precision: str) -> Iterator[str]:
    """Says which layers with weights have another precision than that asked for, because it is their own."""
    outermost: ByIdentity[Any, None] = ByIdentity()
    kept = []
    for path, layer in walk_layers(model):
        if isinstance(layer, keras.Model) or not layer.variables or layer.dtype_policy.name == precision:
            continue
        if layer not in outermost:
            kept.append(f"{path} ({layer.dtype_policy.name})")
        for _, each in [("", layer), *walk_layers(layer)]:
            outermost[each] = None
    if kept:
        more = f" and {len(kept) - NAMED} more" if len(kept) > NAMED else ""
        yield f"precision: layers with a policy of their own keep it: {', '.join(kept[:NAMED])}{more}"


def _following(model: Any) -> list[Any]:
    """Layers whose policy is the one that was in force when they were made, and not one they were given.

    Keras hands the policy in force around as one object, which models have too. A configuration always names a policy,
    so of a layer that was made from one (in a model that was saved or cloned; where a wrapper copied it) this cannot be
    told: its policy is its own if it is not the usual one, or if that of the layer that holds it is its own. Of what a
    `Bidirectional` with a policy of its own has copied nobody knows even that.
    """
    layers = [(path, layer) for path, layer in walk_layers(model) if not isinstance(layer, keras.layers.InputLayer)]
    models = [model, *(layer for _, layer in layers if _is_network(layer))]
    in_force = ByIdentity([(keras.config.dtype_policy(), None), *((each.dtype_policy, None) for each in models)])
    told = [layer for _, layer in layers if layer.dtype_policy in in_force and not isinstance(layer, keras.Model)]
    seen = [layer for layer in told if layer.variables]
    weighty = seen or [layer for _, layer in layers if layer.variables and _from_configuration(layer)]
    usual = Counter(layer.dtype_policy.name for layer in weighty).most_common(1)
    follows: dict[str, bool] = {}
    at = dict(layers)
    for path, layer in layers:  # what holds a layer comes before it
        holder = path.rpartition("/")[0]
        untold = _from_configuration(layer) or (not seen and jaxpr.given_arguments(layer) is None)
        like_others = untold and layer.dtype_policy.name in [name for name, _ in usual]
        if like_others and not follows.get(holder, True) and isinstance(at[holder], keras.layers.Bidirectional):
            raise ValueError(
                f"whether {path!r} has a policy of its own is lost, because its wrapper, with one, copied it"
            )
        like_others = like_others and follows.get(holder, True)
        follows[path] = isinstance(layer, keras.Model) or layer.dtype_policy in in_force or like_others
    return each_once(layer for path, layer in layers if follows[path])


def _with_model(model: Any, following: list[Any]) -> list[Any]:
    """With the model itself, where it is subclassed and has the policy of its layers or the one in force.

    It then casts what it is called with.
    """
    alike = {each.dtype_policy.name for each in following} | {keras.config.dtype_policy().name}
    return [model, *following] if not _is_network(model) and model.dtype_policy.name in alike else following


def _is_network(model: Any) -> bool:
    """Whether a model is Sequential or functional, which take no policy of their own."""
    return isinstance(model, keras.Sequential) or hasattr(model, "operations")


def _from_configuration(layer: Any) -> bool:
    """Whether a layer's arguments are those of a configuration, which names what hardly anybody gives."""
    given = jaxpr.given_arguments(layer) or {}
    return "trainable" in given and "trainable" not in inspect.signature(type(layer).__init__).parameters


@contextmanager
def _saying(layers: Sequence[Any], precision: str) -> Iterator[None]:
    """Inside, these layers say that they have another policy; the model says that it was never compiled."""
    before = [(layer, layer.dtype_policy) for layer in layers]
    try:
        for layer in layers:
            layer.dtype_policy = keras.DTypePolicy(precision)
        yield
    finally:
        for layer, policy in before:
            layer.dtype_policy = policy


@contextmanager
def _findable(model: Any) -> Iterator[None]:
    """Inside, Keras finds classes and functions of the user's own by the names that configurations give them.

    Functions have names of their own inside: several may share one, and Keras does not look for one without.
    """
    found: dict[str, Any] = {}
    before: list[tuple[Any, str]] = []
    try:
        for owner in [model, *(layer for _, layer in walk_layers(model))]:
            for value in [owner, *vars(owner).values()]:
                # code that ran without a name is of no module
                if isinstance(value, types.FunctionType) and not (value.__module__ or "").startswith("keras."):
                    before.append((value, value.__name__))
                    value.__name__ = f"function_{len(before)}"
                    found[value.__name__] = value
                elif hasattr(value, "get_config"):
                    found.setdefault(type(value).__name__, type(value))
        with keras.saving.custom_object_scope(found):
            yield
    finally:
        for function, name in reversed(before):
            function.__name__ = name


def _again(model: Any) -> Any:
    """The model made again, without what it was compiled with."""
    if not _is_network(model):
        made = _layer_again(model)
        made.build_from_config(model.get_build_config())
        made.built = True  # Keras builds it by a call and does not say so; its variables are looked at afterwards
        return made
    compiled, model.compiled = model.compiled, False
    try:
        return keras.models.clone_model(model, clone_function=_layer_again, recursive=True)
    finally:
        model.compiled = compiled


def _layer_again(layer: Any) -> Any:
    """A layer by its configuration; of a model that writes none Keras remembers defaults, not what it was given."""
    if isinstance(layer, keras.Model) and type(layer).get_config is keras.Model.get_config:
        if len(inspect.signature(type(layer).__init__).parameters) == 1:  # itself: there was nothing to give
            return type(layer)()
        raise ValueError(f"{type(layer).__name__} is a subclassed model without a get_config of its own")
    config = layer.get_config()
    if (
        isinstance(layer, keras.layers.Layer) and config.get("dtype") == layer.dtype
    ):  # Keras' SpatialDropout and others write their variables' type instead
        config["dtype"] = layer.dtype_policy.name
    return type(layer).from_config(config)


def _check(model: Any, copied: Any, changed: Sequence[Any], precision: str) -> None:
    """What was made again has the same classes, layers and variables, and its layers say the precision."""
    if type(copied) is not type(model):
        raise ValueError(f"of a {type(model).__name__} Keras makes a {type(copied).__name__}")
    wanted = ByIdentity((layer, None) for layer in changed)
    layers, made = walk_layers(model), walk_layers(copied)
    if [type(each) for _, each in layers] != [type(each) for _, each in made]:
        raise ValueError(f"of its {things_text(len(layers), 'layer')} Keras makes {len(made)} others")
    for (path, layer), (_, other) in zip(layers, made, strict=True):
        if layer in wanted and other.dtype_policy.name != precision:
            raise ValueError(f"its layer {path!r} stays in {other.dtype_policy.name}")
    old, new = ([tuple(each.shape) for each in one.variables] for one in (model, copied))
    if old != new:
        raise ValueError(
            f"its {things_text(len(old), 'variable')} {'becomes' if len(old) == 1 else 'become'} {len(new)} others: "
            "layers share weights, or have more"
        )


def _carry_over(model: Any, copied: Any) -> None:
    for (_, layer), (_, made) in zip(walk_layers(model), walk_layers(copied), strict=True):
        made.name = layer.name  # what a subclassed model makes is named by the count of its kind
    for held, value in zip(copied.variables, model.variables, strict=True):
        jaxpr.name_alike(held, value)
        held.trainable = value.trainable
        held.assign(value.value)


_FORGOTTEN = "; whether the model was compiled with auto_scale_loss=False Keras does not remember"
SCALED = (
    "optimizer: in the LossScaleOptimizer that Keras puts around that of a mixed_float16 model, for optimizer= says "
    f"nothing else{_FORGOTTEN}"
)
UNSCALED = (
    "optimizer: without the LossScaleOptimizer that Keras puts around that of a mixed_float16 model, which ties the "
    f"updates of stages together{_FORGOTTEN}"
)


def _is_wrapped(model: Any, copied: Any) -> bool:
    """Whether Keras would scale the loss of the copy of itself; a scaling that the model has is its own."""
    scales = isinstance(getattr(model, "optimizer", None), keras.optimizers.LossScaleOptimizer)
    return bool(copied.compiled) and copied.dtype_policy.name == "mixed_float16" and not scales


def _compile_alike(model: Any, copied: Any, *, scaled: bool) -> None:
    """Compile the copy as the model was, with an optimizer of its own; not where the model does that its own way.

    `scaled`: Keras may wrap the optimizer to scale the loss, as it does for mixed_float16 unless told not to.
    """
    given: Mapping[str, Any] = jaxpr.compile_arguments(model)
    if not given or has_own_step(model):
        return
    optimizer = given["optimizer"]
    fresh = fresh_optimizer(optimizer) if isinstance(optimizer, keras.optimizers.Optimizer) else optimizer
    copied.compile(**{**given, "optimizer": fresh}, auto_scale_loss=scaled)
