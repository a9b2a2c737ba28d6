"""Data of `fit`, `evaluate` and `predict`: one adapter for all kinds, with the SDK's checks before anything compiles.

Keras' own adapter reads what it knows (arrays, `PyDataset`, a torch `DataLoader`, a tf dataset); datasets of `tf.data`
are read here. Source of the checks: graphcore/keras@164c0e60 keras/ipu/extensions/data_adapter.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.dtypes import NARROWED
from workbench.base.units import plural, things_text
from workbench.base.whole import count
from workbench.engine.frontends.describe.checks import check_dtype
from workbench.engine.frontends.trace.jaxpr import KerasDataAdapter, keras_adapter
from workbench.errors import InputError
from workbench.ipu._feeds import FeedError, types_of
from workbench.ipu.keras._execution.given import check_data, is_arrays
from workbench.tf.data import Dataset
from workbench.tf.data._of_keras import OfDataset, known, nothing_besides


def on_device(element: Any) -> Any:
    """A batch as the IPU has it: 64-bit numbers in 32 bits. Errors: `InputError` for what it has no numbers of."""
    return jax.tree_util.tree_map(_narrow, element)


def _narrow(value: Any) -> Any:
    array = value if hasattr(value, "dtype") else np.asarray(value)
    kind = NARROWED.get(str(array.dtype))
    if kind is None:
        check_dtype("an array of the data", array.dtype)  # of complex numbers Keras would drop a part
    return array if kind is None else np.asarray(array, kind)


class Batches(KerasDataAdapter):  # type: ignore[misc]
    """The batches of some data. `known`: how many there are in a pass; None where nobody can tell or they never end."""

    def __init__(self, inner: Any, known: int | None) -> None:
        self._inner = inner
        self.known = known
        self._types: Any = None

    def get_numpy_iterator(self) -> Iterator[Any]:
        """A pass over the batches. A `FeedError` for one of another shape or type than the first ever was."""
        for batch in self._inner.get_numpy_iterator():
            types = types_of(on_device(batch))
            self._types = types if self._types is None else self._types
            if types != self._types:
                raise FeedError(
                    f"a batch has {types}",
                    expected=f"{self._types}, as the first: a program is compiled for fixed shapes",
                    todo="batch with drop_remainder=True",
                )
            yield batch

    get_jax_iterator = get_numpy_iterator

    @property
    def num_batches(self) -> int | None:
        """Batches of a pass."""
        return self.known

    @property
    def batch_size(self) -> int | None:
        """Samples of a batch, where they are known."""
        size: int | None = self._inner.batch_size
        return size

    @property
    def has_partial_batch(self) -> bool:
        """Whether the last batch is smaller."""
        return bool(self._inner.has_partial_batch)

    @property
    def partial_batch_size(self) -> int | None:
        """Samples of the last batch."""
        size: int | None = self._inner.partial_batch_size
        return size

    def on_epoch_begin(self) -> None:
        """Keras' adapter is told."""
        self._inner.on_epoch_begin()

    def on_epoch_end(self) -> None:
        """Keras' adapter is told."""
        self._inner.on_epoch_end()


def batches(
    x: Any,
    *,
    y: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: bool = False,
    of: str = "",
) -> Batches:
    """The adapter of some data, which errors call x, y and sample_weight, and what they are `of` behind that.

    Errors: `InputError` for a generator, a partial batch, shapes that are not known, a `batch_size` that is none.
    """
    if isinstance(x, Batches):
        return x
    if batch_size is not None:
        batch_size = count("batch_size", batch_size)
    if inspect.isgenerator(x) or inspect.isgeneratorfunction(x):
        raise InputError(
            "the data are a Python generator, which a program on the IPU cannot begin again",
            expected="arrays, a tf.data dataset or a keras.utils.PyDataset",
            todo="write tf.data.Dataset.from_generator(...)",
        )
    if isinstance(x, Dataset):
        nothing_besides(y, sample_weight)
        if x.short != 0:
            last = "may be smaller than the others" if x.short is None else f"has {x.short} samples, fewer than others"
            raise _short(f"a batch of the dataset {last}", "write .batch(..., drop_remainder=True)")
        return Batches(OfDataset(x, class_weight), known(x))
    check_data({f"x{of}": x, f"y{of}": y, f"sample_weight{of}": sample_weight})
    if class_weight is not None and y is None and is_arrays(x):
        raise InputError("class_weight was given for data without targets", todo="give y, or leave class_weight out")
    inner = keras_adapter(
        x, y, sample_weight, batch_size=batch_size, steps=steps, shuffle=shuffle, class_weight=class_weight
    )
    if _ends_partial(inner):
        left = things_text(inner.partial_batch_size, "sample")
        raise _short(
            f"the last batch has {left} and the others {inner.batch_size}",
            f"choose a batch_size that divides the samples, or leave {left} out",
        )
    if isinstance(x, keras.utils.PyDataset) and (inner.num_batches or 0) > 1:
        sizes = [np.shape(jax.tree_util.tree_leaves(x[place])[0])[:1] for place in (0, inner.num_batches - 1)]
        if sizes[0] != sizes[1]:
            raise _short(
                f"the last batch has {things_text(sizes[1][0], 'sample')} and the first {sizes[0][0]}",
                "leave the samples of the smaller one out",
            )
    return Batches(inner, inner.num_batches)


def _short(what: str, todo: str) -> InputError:
    return InputError(what, expected="batches of one size: a program is compiled for fixed shapes", todo=todo)


def _ends_partial(inner: Any) -> bool:
    """Whether the last batch is known to be smaller; datasets tell when it comes."""
    try:
        return bool(inner.has_partial_batch)
    except NotImplementedError:
        return False


def check_steps(data: Batches, steps: int | None) -> int:
    """Batches of an epoch. Errors: `InputError` where they cannot be told, there are none, or the data have fewer."""
    found = steps if steps is not None else data.known
    if found is None:
        raise InputError(
            "the data have no end, or nobody can tell how many batches they have",
            expected="a number of steps",
            todo="give steps_per_epoch to fit, or steps to evaluate and predict",
        )
    if found < 1:
        raise InputError(f"an epoch has {found} {plural(found, 'step')}", expected="at least one batch")
    if data.known is not None and found > data.known:
        raise InputError(
            f"an epoch has {found} {plural(found, 'step')}, and the data have {things_text(data.known, 'batch')}",
            expected=f"at most {things_text(data.known, 'step')}",
            todo="repeat the dataset with .repeat(), or give fewer steps",
        )
    return found


__all__ = ["Batches", "batches", "check_steps", "on_device"]
