"""What a loop of a program iterates over: numbers of `tf.range`, entries of a tensor, elements of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.tf import _graph, _hooks
from workbench.tf._function import lines
from workbench.tf._graph import Tensor
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.math import OPERATIONS
from workbench.tf.data import Dataset, DatasetIterator

_QUEUES = "queues of datasets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """`count` turns, a tensor where only a running program knows it; the element of each from its number."""

    count: Any
    element: Callable[[Any], Any]
    queue: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRange:
    """`tf.range` whose ends are tensors: something to loop over, of a length that no shape can say."""

    start: Any
    limit: Any
    delta: Any
    dtype: Any = None

    def turns(self) -> Turns:
        """So many that the next number would be at the limit or behind it."""
        span, whole = self.limit - self.start, all(map(_whole, (self.start, self.limit, self.delta)))
        count = -(-span // self.delta) if whole else OPERATIONS["ceil"](span / self.delta)

        def element(number: Any) -> Any:
            kind = self.dtype or ("int32" if whole else "float32")
            found = OPERATIONS["cast"](number, kind) * OPERATIONS["cast"](self.delta, kind)
            return found + OPERATIONS["cast"](self.start, kind)

        return Turns(count=OPERATIONS["cast"](count, "int32"), element=element)


def _whole(value: Any) -> bool:
    return isinstance(value, int) or (hasattr(value, "dtype") and "int" in str(value.dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """`enumerate` of what a program loops over."""

    inner: Any
    start: Any

    def turns(self) -> Turns:
        """Pairs of a number and an element."""
        inner = turns_of(self.inner)
        assert inner is not None
        return replace(inner, element=lambda number: (number + self.start, inner.element(number)))


def turns_of(value: Any) -> Turns | None:
    """The turns of a loop over a value; None for what Python iterates over."""
    if isinstance(value, TensorRange | Enumerated):
        return value.turns()
    if isinstance(value, Dataset):
        return _of_dataset(value)
    if isinstance(value, DatasetIterator) or hasattr(value, "infeed_spec"):
        raise InputError(
            f"a loop over an iterator of a dataset, whose end nobody knows before{_where()}",
            expected="a loop over numbers",
            todo="loop over tf.range(count) and take next(iterator)",
        )
    if isinstance(value, jax.Array):
        return _of_array(value)
    if is_symbolic(value) and not isinstance(value, dict):
        return _of_tensor(as_tensor(symbolic(value)))
    return None


def _where() -> str:
    found = lines.here()
    return f" ({found})" if found else ""


def _of_array(value: Any) -> Turns:
    if value.ndim == 0:
        raise KindError(f"a loop over {short(value)}, which is one number{_where()}", expected="tf.range of it")
    held = np.asarray(value)
    steps = np.diff(held) if held.ndim == 1 and held.dtype.kind == "i" else None
    if steps is not None and len(held) and (steps == steps[:1]).all():
        start, step = held[0], steps[0] if len(steps) else held.dtype.type(1)
        return Turns(count=len(held), element=lambda number: OPERATIONS["cast"](number, held.dtype) * step + start)
    return Turns(count=len(held), element=lambda number: OPERATIONS["gather"](value, number))


def _of_tensor(tensor: Tensor) -> Turns:
    shape = _graph.known_shape(tensor)
    if not shape:
        raise KindError(f"a loop over {tensor}, which is one number{_where()}", expected="tf.range of it")
    return Turns(count=shape[0], element=lambda number: OPERATIONS["gather"](tensor, number))


def _of_dataset(dataset: Dataset) -> Turns:
    if dataset.cardinality() < 0:
        raise InputError(
            f"a loop over a dataset whose elements nobody has counted, or that has no end{_where()}",
            expected="a dataset of a known number of elements",
            todo="loop over dataset.take(count)",
        )
    queue = queue_of(dataset.repeat(), dataset)
    return Turns(count=dataset.cardinality(), element=lambda number: queue._dequeue(), queue=queue)


def queue_of(dataset: Any, owner: Any) -> Any:
    """The infeed queue of a dataset in the function that is recorded, one for each."""
    kept = _graph.get_default_graph().root.collections.setdefault(_QUEUES, [])
    for held, queue in kept:
        if held is owner:
            return queue
    with _graph.outside_graphs():
        # Elements of a loop, on the host too, are refused where one has another shape, rather than may have.
        elements = dataset.as_numpy_iterator()
        made = _hooks.ipu.get().ipu_infeed_queue.IPUInfeedQueue(elements, device_ordinal=None)
    kept.append((owner, made))
    return made


__all__ = ["Enumerated", "TensorRange", "Turns", "queue_of", "turns_of"]
