"""How Keras' training loop reads a dataset: what its adapter is, and what may be given beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from workbench.base.text import short
from workbench.engine.frontends.trace.jaxpr import KerasDataAdapter
from workbench.errors import InputError


class OfDataset(KerasDataAdapter):  # type: ignore[misc]
    """A `tf.data` dataset of batches: x, or tuples of x, y and sample weights."""

    batch_size = None
    has_partial_batch = False
    partial_batch_size = None

    def __init__(self, dataset: Any, class_weight: Mapping[int, float] | None) -> None:
        self._dataset, self._class_weight = dataset, class_weight

    def get_numpy_iterator(self) -> Iterator[Any]:
        """A pass over the dataset."""
        for element in self._dataset:
            arrays = to_arrays(element)
            batch = arrays if isinstance(arrays, tuple) else (arrays,)
            yield batch if self._class_weight is None else _weighted(batch, self._class_weight)

    get_jax_iterator = get_numpy_iterator

    @property
    def num_batches(self) -> int | None:
        """Batches of a pass; None for a dataset without end, or one whose length nobody knows."""
        return known(self._dataset)


def adapter(
    dataset: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    steps_per_epoch: int | None = None,
    shuffle: bool = False,
    class_weight: Mapping[int, float] | None = None,
) -> OfDataset:
    """The adapter of a dataset for `fit`, `evaluate` and `predict`. It shuffles itself: `shuffle`, which `fit` gives
    always, changes nothing.

    Errors: `InputError` for targets, weights or a batch size beside it, and for one without end and without steps.
    """
    nothing_besides(y, sample_weight)
    if batch_size is not None:
        raise InputError(
            f"batch_size={short(batch_size)} was given beside a dataset, whose elements are batches",
            todo="leave batch_size out, and write .batch(...) where the dataset is made",
        )
    if steps_per_epoch is None and dataset.cardinality() == -1:
        raise InputError(
            "the dataset has no end, so nobody can tell how many batches a pass has",
            expected="a number of steps",
            todo="give steps_per_epoch to fit, validation_steps beside validation_data, steps to the others",
        )
    return OfDataset(dataset, class_weight)


def known(dataset: Any) -> int | None:
    """Batches of a pass, where they are known and it ends."""
    count: int = dataset.cardinality()
    return count if count >= 0 else None


def nothing_besides(y: Any, sample_weight: Any) -> None:
    """A dataset has its targets and weights itself: an `InputError` for others."""
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise InputError(f"{name} was given beside a dataset", todo=f"put {name} into the dataset's elements")


def _weighted(batch: tuple[Any, ...], class_weight: Mapping[int, float]) -> tuple[Any, ...]:
    """A batch with the weight of each sample's class; with its own weights besides, their product."""
    if len(batch) < 2:
        raise InputError("class_weight was given for data without targets", todo="leave class_weight out")
    classes = np.asarray(batch[1])
    if classes.ndim > 1:
        classes = np.argmax(classes, -1) if classes.shape[-1] > 1 else classes[..., 0]
    weights = np.asarray([class_weight.get(int(each), 1.0) for each in classes.ravel()], np.float32)
    weights = weights.reshape(classes.shape)
    return (batch[0], batch[1], weights * batch[2] if len(batch) > 2 else weights)


def to_arrays(element: Any) -> Any:
    """An element with arrays as leaves, float64 as float32 and lists as tuples, as in datasets of batches."""
    if isinstance(element, Mapping):
        return {str(key): to_arrays(value) for key, value in element.items()}
    if isinstance(element, list | tuple) and any(
        hasattr(each, "shape") or isinstance(each, Mapping) for each in element
    ):
        return tuple(to_arrays(each) for each in element)
    if hasattr(element, "detach"):
        element = element.detach().cpu().numpy()
    elif hasattr(element, "numpy") and not hasattr(element, "__array__"):
        element = element.numpy()
    try:
        array = np.asarray(element)
    except (TypeError, ValueError, OverflowError):  # lists of several lengths
        raise InputError(f"an element of a dataset is {short(element)}", expected="arrays") from None
    return array.astype(np.float32) if array.dtype == np.float64 else array


__all__ = ["OfDataset", "adapter", "known", "nothing_besides", "to_arrays"]
