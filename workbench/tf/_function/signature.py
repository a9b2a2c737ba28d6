"""What a `tf.function` is called with: tensors by shape and type, everything else by value or as the object it is."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.dtypes import NARROWED
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError
from workbench.tf._graph import Tensor
from workbench.tf._graph.convert import array, check_depth
from workbench.tf._graph.dtypes import DType, given_type, holds_numbers
from workbench.tf._graph.shapes import TensorShape, sizes
from workbench.tf._graph.variables import Variable

_NARROW = {**NARROWED, "complex128": "complex64"}
_VALUES = (bool, int, float, complex, str, bytes, type, DType)


class TensorSpec:
    """Shape and type that an argument of a `tf.function` has to have; None for sizes, or a shape, that may be any."""

    @checked
    def __init__(self, shape: Any, dtype: Any = "float32", name: str | None = None) -> None:
        self._sizes = None if shape is None else sizes(shape)
        self._dtype = given_type(dtype)
        self._name = name

    @property
    def shape(self) -> Any:
        """The shape."""
        return TensorShape(self._sizes) if self._sizes is not None else None

    @property
    def dtype(self) -> DType:
        """The type."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name."""
        return self._name

    @property
    def known(self) -> tuple[int, ...] | None:
        """The shape, where every size is known."""
        if self._sizes is None or any(size is None for size in self._sizes):
            return None
        return tuple(int(size) for size in self._sizes if size is not None)

    def takes(self, shape: Sequence[int], dtype: str) -> bool:
        """Whether an array of this shape and type is one of it."""
        if _NARROW.get(str(self._dtype), str(self._dtype)) != _NARROW.get(dtype, dtype):
            return False
        if self._sizes is None:
            return True
        same = zip(self._sizes, shape, strict=False)
        return len(self._sizes) == len(shape) and all(want in (None, have) for want, have in same)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._sizes}, dtype={self._dtype!r}, name={self._name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self._sizes, str(self._dtype)) == (other._sizes, str(other._dtype))

    def __hash__(self) -> int:
        return hash((self._sizes, str(self._dtype)))


@dataclass(frozen=True, slots=True)
class _Same:
    """An object that is the same only as itself."""

    held: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a call asks for: `leaves` of its arguments with `types` of those that are tensors, None for the others."""

    names: tuple[str, ...]
    leaves: tuple[Any, ...]
    types: tuple[tuple[tuple[int, ...], str] | None, ...]
    tree: Any

    @property
    def key(self) -> Any:
        """Calls of equal keys share a recording."""
        given = zip(self.leaves, self.types, strict=True)
        return self.tree, tuple(_key(leaf) if kind is None else kind for leaf, kind in given)

    @property
    def tensors(self) -> list[Any]:
        """The arguments that are tensors."""
        return [leaf for leaf, kind in zip(self.leaves, self.types, strict=True) if kind is not None]

    def filled(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Arguments and keyword arguments with these in the places of the tensors."""
        given = iter(tensors)
        leaves = [leaf if kind is None else next(given) for leaf, kind in zip(self.leaves, self.types, strict=True)]
        found: tuple[Any, Any] = jax.tree_util.tree_unflatten(self.tree, leaves)
        return found


def asked(function: str, args: Any, kwargs: Any, parameters: Sequence[str] = ()) -> Asked:
    """What a call of a function with these `parameters` asks for; a `KindError` for what cannot be recorded."""
    try:
        check_depth((args, kwargs))
    except RecursionError as error:
        raise InputError(f"{function} was called with {short(args)}: {error}", expected="tensors and objects") from None
    for place, leaf in enumerate((*args, *kwargs.values())):
        _refuse_generator(function, _named(place, parameters), leaf)
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs), is_leaf=lambda each: each is None)
    leaves, names = [], []
    for path, leaf in paths:
        steps = [getattr(step, "key", getattr(step, "idx", step)) for step in path[1:]]
        first = _named(steps[0], parameters) if isinstance(steps[0], int) else str(steps[0])
        names.append("_".join([first, *map(str, steps[1:])]))
        leaves.append(_argument(function, names[-1], leaf))
    kinds = tuple(_type(leaf) for leaf in leaves)
    return Asked(names=tuple(names), leaves=tuple(leaves), types=kinds, tree=tree)


def _named(place: int, parameters: Sequence[str]) -> str:
    return parameters[place] if place < len(parameters) else f"argument{place}"


def _refuse_generator(function: str, name: str, leaf: Any) -> None:
    if isinstance(leaf, types.GeneratorType):
        raise KindError(
            f"argument {name} of {function} is a generator: it would be read once, while the function is recorded",
            expected="tensors, or an iterator over a tf.data.Dataset",
            todo="make tf.data.Dataset.from_generator(lambda: ...) of it and pass iter(dataset)",
        )


def _argument(function: str, name: str, leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic | jax.Array):
        if not holds_numbers(leaf):
            raise KindError(f"argument {name} of {function} is {short(leaf)}", expected="an array of numbers")
        return leaf
    if hasattr(leaf, "detach") and hasattr(leaf, "numpy"):  # a tensor of torch
        return leaf.detach().cpu().numpy()
    return leaf


def _type(leaf: Any) -> tuple[tuple[int, ...], str] | None:
    """Shape and type of a tensor as a program has it; None for what is none."""
    if isinstance(leaf, TensorSpec):
        if leaf.known is None:
            raise InputError(
                f"a concrete function was asked for {leaf}", expected="every size known: programs have fixed shapes"
            )
        return leaf.known, _narrow(leaf.dtype)
    if isinstance(leaf, Variable | keras.Variable):
        return None
    if isinstance(leaf, Tensor):
        return tuple(leaf.shape), str(leaf._dtype)
    if isinstance(leaf, np.ndarray | np.generic | jax.Array):
        return tuple(leaf.shape), _narrow(leaf.dtype)
    return None


def _narrow(dtype: Any) -> str:
    return _NARROW.get(str(dtype), str(dtype))


def _key(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, _VALUES):
        return type(leaf), leaf if leaf == leaf else "nan"
    return _Same(leaf)


def of_signature(function: str, signature: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Arguments as tensors of an input signature; an `InputError` for those that are not of it."""
    if len(args) != len(signature):
        raise InputError(
            f"{function} was called with {things_text(len(args), 'argument')}",
            expected=f"{len(signature)}, as in its input_signature",
        )
    return [
        _of_spec(function, number, spec, given)
        for number, (spec, given) in enumerate(zip(signature, args, strict=True))
    ]


def _of_spec(function: str, number: int, spec: Any, given: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        leaves, tree = jax.tree_util.tree_flatten(spec)
        try:
            parts = tree.flatten_up_to(given)
        except ValueError as error:
            raise InputError(
                f"argument {number} of {function} is {short(given)}: {error}", expected=f"{spec}"
            ) from None
        made = [_of_spec(function, number, each, part) for each, part in zip(leaves, parts, strict=True)]
        return jax.tree_util.tree_unflatten(tree, made)
    if isinstance(given, TensorSpec):
        fits = spec.takes(given.known or (), str(given.dtype))
    else:
        try:
            found = (
                given if isinstance(given, Tensor) else array(given, None if hasattr(given, "dtype") else spec.dtype)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"argument {number} of {function} is {short(given)}: {error}", expected=f"{spec}"
            ) from None
        fits = spec.takes(tuple(found.shape), str(getattr(found, "_dtype", found.dtype)))
        given = found
    if not fits:
        raise InputError(
            f"argument {number} of {function} is {_told(given)}", expected=f"{spec}, as in its input_signature"
        )
    return given


def _told(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return str(value)
    return f"an array of shape {tuple(value.shape)} and type {getattr(value, '_dtype', value.dtype)}"


def check_signature(signature: Any) -> tuple[Any, ...] | None:
    """An input signature as a tuple; an `InputError` for what is none."""
    if signature is None:
        return None
    if not isinstance(signature, list | tuple):
        raise KindError(f"input_signature is {short(signature)}", expected="a list of tf.TensorSpec")
    try:
        check_depth(signature)
    except RecursionError as error:
        raise InputError(f"input_signature is {short(signature)}: {error}", expected="tf.TensorSpec") from None
    for each in jax.tree_util.tree_leaves(tuple(signature)):
        if not isinstance(each, TensorSpec):
            raise KindError(f"input_signature holds {short(each)}", expected="tf.TensorSpec")
    return tuple(signature)


__all__ = ["Asked", "TensorSpec", "asked", "check_signature", "of_signature"]
