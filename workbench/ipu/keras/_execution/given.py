"""What `fit`, `evaluate` and `predict` are given, checked before Keras reads it: its errors name no argument."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.dtypes import NARROWED
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.engine.frontends.describe.checks import check_dtype, flattened
from workbench.engine.frontends.step.own_step import has_own_step
from workbench.engine.frontends.trace.jaxpr import KerasDataAdapter, keras_slices
from workbench.errors import InputError, WorkbenchError
from workbench.tf.data._of_keras import nothing_besides

_FOREIGN = ("torch", "tensorflow", "grain")  # whose datasets Keras reads
_HOOKS = tuple(name for name in dir(keras.callbacks.Callback) if name.startswith(("on_", "set_")))


def check_callbacks(callbacks: Any) -> None:
    """Callbacks are Keras', or have all that its loop calls; an `InputError` for others."""
    if callbacks is None or callbacks is False:
        return
    for each in flattened("callbacks", callbacks):
        if isinstance(each, type) or not all(hasattr(each, name) for name in _HOOKS):
            called = f"; call it: {each.__name__}()" if isinstance(each, type) else ""
            raise InputError(
                f"callbacks holds {short(each)}",
                expected=f"a keras.callbacks.Callback, or a list of them{called}",
            )


def check_class_weight(class_weight: Any, y: Any, sample_weight: Any) -> None:
    """A weight for each class, by its number, of a model with one output; an `InputError` for what is none."""
    if class_weight is None:
        return
    if not isinstance(class_weight, Mapping):
        raise InputError(f"class_weight is {short(class_weight)}", expected="a dictionary such as {0: 1.0, 1: 2.5}")
    for key, weight in class_weight.items():
        if not (_is_real(key) and key == math.floor(key)):
            raise InputError(
                f"class_weight has the class {short(key)}",
                expected="the number of a class, as targets hold it",
                todo="write the classes' numbers: {0: 1.0, 1: 2.5}",
            )
        if not _is_real(weight):
            raise InputError(
                f"class_weight of the class {key} is {short(weight)}", expected="a finite number such as 2.5"
            )
    if sample_weight is not None:
        raise InputError(
            "class_weight was given beside sample_weight", expected="one of both", todo="multiply them in sample_weight"
        )
    if keras.tree.is_nested(y):
        raise InputError(
            f"class_weight was given for {things_text(len(keras.tree.flatten(y)), 'array')} of targets",
            expected="one array: class_weight is for a model with one output",
            todo="give each output its sample_weight",
        )


def check_share(share: Any) -> None:
    """`validation_split` is a share of the samples; an `InputError` for what is none."""
    if not (_is_real(share) and 0 <= share < 1):
        raise InputError(
            f"validation_split is {short(share)}", expected="a share of the samples: a number from 0 up to below 1"
        )


def check_splits(x: Any, y: Any, sample_weight: Any, share: float) -> None:
    """Arrays whose last share is some of the samples and not all; an `InputError` for others."""
    if not is_arrays(x):
        raise InputError(
            f"validation_split is {share}, and x is a {type(x).__name__}",
            expected="arrays, which alone can be split",
            todo="leave validation_split out, and give validation_data",
        )
    check_data({"x": x, "y": y, "sample_weight": sample_weight})
    samples = keras.tree.flatten(x)[0].shape[0]
    if not 0 < math.floor(samples * (1.0 - share)) < samples:
        raise InputError(
            f"validation_split is {share}, and x has {things_text(samples, 'sample')}",
            expected="a share that leaves samples to train with and to validate with",
        )


def _is_real(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and math.isfinite(value)


def is_arrays(value: Any) -> bool:
    """Whether Keras reads it as arrays, or lists, tuples and dictionaries of them."""
    return all(map(keras_slices, flattened("the data", value)))


def check_data(given: Mapping[str, Any]) -> None:
    """Data by name, x first: arrays of one number of samples and of types an IPU has, or a dataset alone.

    Errors: `InputError` that names what is none.
    """
    name, x = next(iter(given.items()))
    if not is_arrays(x):
        _check_reads(name, x)
        nothing_besides(*list(given.values())[1:])
        return
    counts: dict[str, set[int]] = {}
    for name, value in given.items():
        if not is_arrays(value):
            raise InputError(f"{name} is {short(value)}", expected="an array of samples", todo=_as_array(name, value))
        counts[name] = {_samples(name, each) for each in keras.tree.flatten(value) if each is not None}
    if len(set().union(*counts.values())) > 1:
        said = [f"{name} has {' and '.join(map(str, sorted(each)))}" for name, each in counts.items() if each]
        raise InputError(
            f"samples differ in number: {', '.join(said)}",
            expected="as many of each",
            todo="give one target and one weight for each sample of x",
        )


def _as_array(name: str, value: Any) -> str:
    return f"write np.asarray({name.partition(' ')[0]})" if isinstance(value, list | tuple) else ""


def _check_reads(name: str, x: Any) -> None:
    """A dataset of a kind that Keras reads."""
    foreign = any(each.__module__.partition(".")[0] in _FOREIGN for each in type(x).__mro__)
    if not (foreign or isinstance(x, keras.utils.PyDataset | KerasDataAdapter)):
        raise InputError(
            f"{name} is {short(x)}",
            expected="arrays, a tf.data dataset or a keras.utils.PyDataset",
            todo=_as_array(name, x),
        )


def _samples(name: str, array: Any) -> int:
    if isinstance(array, np.ndarray) and str(array.dtype) not in NARROWED:
        check_dtype(name, array.dtype)
    if not array.shape:
        raise InputError(f"{name} is {short(array)}, a single number", expected="an array of samples")
    return int(array.shape[0])


@contextmanager
def explained(model: Any, batches: Sequence[Any]) -> Iterator[None]:
    """What a model raises when it is traced with a batch that does not fit it is an `InputError` that says so.

    After it failed and not before: a model may take other shapes than those it was made with.
    """
    try:
        yield
    except WorkbenchError:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        found = _misfit(model, batches[0], error) if batches and not has_own_step(model) else None
        if found is None:
            raise
        raise found from error


def _misfit(model: Any, batch: Any, error: Exception) -> InputError | None:
    x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
    taken, gives = (_shapes(getattr(model, side, None)) for side in ("inputs", "outputs"))
    found, name = _shapes(x), f"the model {model.name!r}"
    if taken and len(found) != len(taken):
        return InputError(
            f"x has {things_text(len(found), 'array')}", expected=f"{things_text(len(taken), 'array')}, as {name} takes"
        )
    for shape, wanted in zip(found, taken, strict=False):
        if not _fits(shape, wanted):
            return InputError(
                f"a sample of x has shape {shape}",
                expected=f"shape {wanted}, as {name} takes".replace("None", "any"),
                todo="give x of that shape, or make the model for this one",
            )
    loss = getattr(model, "loss", None)
    if y is None and loss is not None:
        return InputError(
            f"y is missing, and {name} has the loss {short(loss)}",
            expected="targets that its outputs are compared with",
            todo="give y, or a dataset of (x, y)",
        )
    for shape, wanted in zip(_shapes(y), gives, strict=False):
        if not (_fits(shape, wanted) or _fits(shape, wanted[:-1])):  # as class numbers
            return InputError(
                f"a sample of y has shape {shape}, and its loss {short(loss)} cannot take it: {error}",
                expected=f"shape {wanted}, as {name} gives".replace("None", "any"),
                todo="give y of that shape, or another number of units to the last layer",
            )
    return None


def _shapes(arrays: Any) -> list[tuple[Any, ...]]:
    return [tuple(each.shape)[1:] for each in jax.tree_util.tree_leaves(arrays)]


def _fits(shape: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    """Whether Keras takes the one for the other: sizes that are said are equal, but for a last one of 1."""
    alike = len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))
    return alike or (shape[-1:] == (1,) and _fits(shape[:-1], wanted)) or (wanted[-1:] == (1,) and shape == wanted[:-1])


__all__ = [
    "check_callbacks",
    "check_class_weight",
    "check_data",
    "check_share",
    "check_splits",
    "explained",
    "is_arrays",
]
