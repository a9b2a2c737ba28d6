"""The layers of a model in their order, and what would cross a cut behind each: what a search of stages cuts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import keras

from workbench.base.identity import ByIdentity
from workbench.engine.frontends.staging.stages import stage_layers
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChain:
    """Names of layers in order; `crossing_bytes[i]` is what one sample sends over a cut behind layer i.

    A tensor that is read further on crosses every cut between its maker and its last reader, a residual connection
    too. `known` is false for models whose layers do not say what they read: then nothing is counted. `shared`: layers
    that have a variable in common, each with the next of them; a further call of a layer stands with what it reads.
    """

    names: tuple[str, ...]
    crossing_bytes: tuple[int, ...]
    known: bool = True
    shared: tuple[tuple[int, int], ...] = ()

    def after(self, cuts: tuple[int, ...]) -> list[int]:
        """A stage per layer, for cuts in front of these places."""
        return [sum(cut <= place for cut in cuts) for place in range(len(self.names))]


def chain_of(source: Any) -> LayerChain:
    """The chain of a Keras model, a function that builds one, a ready model or its name.

    Errors: `InputError` for what is no model.
    """
    return _of_ready(source) if isinstance(source, str) else _of_model(_model(source))


@functools.lru_cache(maxsize=4)
def _of_ready(name: str) -> LayerChain:
    """Of a ready model: building one takes seconds, and it is the same again."""
    return _of_model(_model(name))


def _of_model(model: Any) -> LayerChain:
    layers = stage_layers(model)
    names = tuple(layer.name for layer in layers)
    calls = _calls(model)
    crossing, called = ((0,) * len(names), {}) if calls is None else _crossing(names, calls)
    return LayerChain(names=names, crossing_bytes=crossing, known=calls is not None, shared=_shared(layers, called))


def _shared(layers: list[Any], called: Mapping[str, set[int]]) -> tuple[tuple[int, int], ...]:
    """Neighbours among the places at which one variable is used; `called` says where calls of a layer stand."""
    users: ByIdentity[Any, set[int]] = ByIdentity()
    for place, layer in enumerate(layers):
        for variable in layer.variables:
            users[variable] = users.get(variable, set()) | {place} | called.get(layer.name, set())
    return tuple(sorted({pair for _, places in users.items() for pair in pairwise(sorted(places))}))


def _model(source: Any) -> Any:
    if isinstance(source, str):
        from workbench.engine.frontends.ready import ready

        source = ready(source)
    if hasattr(source, "stateless_call"):
        return source
    builder = getattr(source, "builder", source)
    model = builder() if callable(builder) else None
    if not hasattr(model, "stateless_call"):
        raise InputError(
            f"{source!r} cannot be cut into stages", expected="a Keras model, a function that builds one, a ready name"
        )
    return model


def _calls(model: Any) -> list[tuple[str, Any]] | None:
    """Each call of the model's graph in order: the layer that makes it, and the call; None where there is no graph."""
    graph = getattr(model, "_functional", None) or model
    operations = getattr(graph, "operations", None)
    depths = getattr(graph, "_nodes_by_depth", None)
    if operations is None or not isinstance(depths, dict):
        return None
    found = [node for depth in sorted(depths, reverse=True) for node in depths[depth]]
    return [(node.operation.name, node) for node in found]


def _crossing(names: tuple[str, ...], calls: list[tuple[str, Any]]) -> tuple[tuple[int, ...], dict[str, set[int]]]:
    """Bytes of a sample over a cut behind each layer, and where the calls of each layer stand.

    What is no layer (an operation) stands with what it reads, and so does what calls a layer once more.
    """
    place_of = {name: place for place, name in enumerate(names)}
    made: ByIdentity[Any, tuple[int, int]] = ByIdentity()  # place of a tensor's maker, and its bytes
    last: ByIdentity[Any, int] = ByIdentity()
    called = dict[str, set[int]]()
    for name, call in calls:
        read = [tensor for tensor in call.arguments.keras_tensors if tensor in made]
        behind = max((made[tensor][0] for tensor in read), default=-1)
        place = max(place_of[name], behind) if name in called else place_of.get(name, behind)
        if name in place_of:
            called.setdefault(name, set()).add(place)
        for tensor in read:
            last[tensor] = max(last.get(tensor, -1), place)
        for tensor in call.outputs:
            made[tensor] = (place, _sample_bytes(tensor))
    crossing = [0] * len(names)
    for tensor, (place, size) in made.items():
        for cut in range(max(place, 0), last.get(tensor, -1)):
            crossing[cut] += size
    return tuple(crossing), called


def _sample_bytes(tensor: Any) -> int:
    elements = 1
    for size in tensor.shape[1:]:
        elements *= int(size or 1)
    return elements * int(jnp.dtype(keras.backend.standardize_dtype(tensor.dtype)).itemsize)
