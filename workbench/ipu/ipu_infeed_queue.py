"""`tensorflow.python.ipu.ipu_infeed_queue`: data that a program on the IPU takes from the host as it runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from workbench.base.checked import checked
from workbench.base.dtypes import NARROWED
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError, StateError, UnsupportedError
from workbench.ipu._feeds import (
    DEFAULT_DEPTH,
    END,
    EndOfFeedError,
    FeedError,
    ReadAhead,
    body_arguments,
    check_depth,
    check_ordinal,
    check_program,
    elements_of,
    feed_scopes,
    to_arrays,
    types_of,
)
from workbench.ipu._replicas import take
from workbench.ipu.config._flags import flags
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation
from workbench.tf._ops.host import Failures
from workbench.tf.data import Dataset

_numbers = itertools.count()


class IPUInfeedQueue:
    """The elements of a dataset, one for each turn of a loop it is passed to.

    `dataset`: any iterable of arrays (or of tuples or dicts of them, all of one shape), a Keras `PyDataset`, a torch
    `DataLoader`, a tf dataset; it is not to be used elsewhere afterwards. `device_ordinal`: the device that takes them,
    None for that of the program. `prefetch_depth`: elements held ready, 3 unless said, 1 to 255. `optimise_latency`:
    packets rather than copies. Errors: `ValueError` for shapes that are not known, a depth out of range, a device that
    is not configured and, where it is used, a program on another device; while running, `FeedError` for an element of
    another shape and `EndOfFeedError` when the dataset has ended.
    """

    @checked
    def __init__(
        self,
        dataset: Any,
        device_ordinal: int | None = 0,
        prefetch_depth: int | None = None,
        optimise_latency: bool = False,
        _internal_id: Any = None,
    ) -> None:
        self._prefetch_depth = check_depth(
            "prefetch_depth", DEFAULT_DEPTH if prefetch_depth is None else prefetch_depth
        )
        self._device_ordinal = check_ordinal(device_ordinal)
        self._optimise_latency = optimise_latency
        self._id = str(next(_numbers) if _internal_id is None else _internal_id)
        self._dataset = dataset
        self._failures = Failures()
        self._source: Iterator[Any] = elements_of(dataset)
        self.structure = self._look(dataset)
        self._types = types_of(self.structure)
        self._ahead = ReadAhead(self._source, self._prefetch_depth)
        self._taken = 0
        self._dequeued = False
        self._initialized = False
        self._deleted = False

    def _look(self, dataset: Any) -> Any:
        """The first element, which says what shapes all have; it is kept for the first turn."""
        spec = getattr(dataset, "element_spec", None)
        if spec is not None:
            _check_spec(spec)
        if isinstance(dataset, Dataset) and not dataset.fixed:
            raise InputError(
                "an element of the dataset has a size that is not fully defined, as of a batch that may be smaller",
                expected="arrays of one fixed shape",
                todo="batch with drop_remainder=True",
            )
        try:
            first = to_arrays(next(self._source))
        except StopIteration:
            raise InputError("the dataset of an infeed queue is empty", expected="at least one element") from None
        for leaf in jax.tree_util.tree_leaves(first):
            if leaf.dtype == object or leaf.dtype.kind in "US":
                raise InputError(
                    f"an element of the dataset holds {leaf.dtype}", expected="arrays of numbers of one fixed shape"
                )
        self._source = itertools.chain([first], self._source)
        return first

    # -- in a program ------------------------------------------------------------------------------------

    def _dequeue(self) -> Any:
        """Tensors that stand for the next element; loops call it."""
        check_program("infeed", self._device_ordinal)
        types = self.element_types
        operation = Operation(
            "InfeedDequeue",
            (),
            types,
            lambda run, values: self._take_all(),
            name=f"infeed_{self._id}",
            effects=Effects(queues=frozenset({self})),
        )
        self._dequeued = True
        tree = jax.tree_util.tree_structure(self.structure)
        return jax.tree_util.tree_unflatten(tree, operation.outputs)

    def _take_all(self) -> Sequence[Any]:
        specs = [jax.ShapeDtypeStruct(shape, _on_device(dtype)) for shape, dtype in self._types]
        if flags().synthetic("Infeed"):
            return [np.full(spec.shape, flags().synthetic_value, spec.dtype) for spec in specs]
        with feed_scopes(self._optimise_latency, self._prefetch_depth):
            return take(self._failures.guard(self._next, f"infeed_{self._id}"), specs)

    def _next(self) -> list[Any]:
        """The next element on the host."""
        if self._deleted:
            raise FeedError("the infeed queue was deleted", todo="make a new IPUInfeedQueue")
        found = self._ahead.take()
        if found is END:
            raise EndOfFeedError(
                f"the dataset of the infeed queue ended after {things_text(self._taken, 'element')}",
                expected="an element for every turn of the loop",
                todo="repeat the dataset, or make the loop shorter",
            )
        element = to_arrays(found)
        found = types_of(element)
        if found != self._types:
            raise FeedError(
                f"element {self._taken} of the infeed queue has {_text(found)}",
                expected=f"{_text(self._types)}, as the first: a program is compiled for fixed shapes",
                todo="drop the remainder when batching",
            )
        self._taken += 1
        leaves = jax.tree_util.tree_leaves(element)
        return [np.asarray(leaf, _on_device(str(leaf.dtype))) for leaf in leaves]

    def take_next(self) -> Any:
        """The next element on the host, in its structure; a `StopIteration` behind the last."""
        try:
            leaves = self._next()
        except EndOfFeedError:
            raise StopIteration from None
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(self.structure), leaves)

    def take_many(self, count: int) -> list[list[Any]]:
        """Elements for a program that takes several at once, each as its arrays."""
        if flags().synthetic("Infeed"):
            kinds = self.element_types
            return [[np.full(shape, flags().synthetic_value, dtype) for shape, dtype in kinds] for _ in range(count)]
        return [self._next() for _ in range(count)]

    @property
    def element_types(self) -> list[tuple[tuple[int, ...], str]]:
        """Shape and type of each array of an element, on the device."""
        return [(shape, _on_device(dtype)) for shape, dtype in self._types]

    def mark_dequeued(self) -> None:
        """Say that a program takes from it."""
        self._dequeued = True

    def take_failure(self) -> BaseException | None:
        """What the host's side raised since somebody last asked."""
        return self._failures.take()

    # -- its properties ----------------------------------------------------------------------------------

    @property
    def dequeued(self) -> bool:
        """Whether a loop takes from it."""
        return self._dequeued

    @property
    def number_of_tuple_elements(self) -> int:
        """How many arguments it adds to a loop's body."""
        given, named = body_arguments(self.structure)
        return len(given) + len(named)

    @property
    def prefetch_depth(self) -> int:
        """Elements held ready on the host."""
        return self._prefetch_depth

    @property
    def _type_spec(self) -> InfeedSpec:
        """What another function needs to take elements from this queue; a `RuntimeError` before `initializer`."""
        if not self._initialized:
            raise StateError(
                "A specification of an IPUInfeedQueue was asked for before its initializer. "
                "To mend it: ask for queue.initializer first."
            )
        return InfeedSpec(queue=self)

    @staticmethod
    def _from_type_spec(spec: InfeedSpec) -> IPUInfeedQueue:
        """The queue of a specification, which neither initialises nor deletes what it shares."""
        lent = _LentQueue.__new__(_LentQueue)
        lent.__dict__ = spec.queue.__dict__
        return lent

    @property
    def initializer(self) -> Operation:
        """The operation that makes it ready; asked for once, a second time is a `ValueError`."""
        if self._initialized:
            raise InputError(
                "the initializer of an infeed queue can be asked for once", todo="keep it and run it when needed"
            )
        self._initialized = True
        return self._host_operation("infeed_initialize", self._begin)

    @property
    def deleter(self) -> Operation:
        """The operation that lets its resources go."""
        return self._host_operation("infeed_delete", self._end)

    def _host_operation(self, kind: str, action: Any) -> Operation:
        def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
            action()
            return ()

        with _graph.scoped(device="cpu", outside="", after=()):
            return Operation(kind, (), (), compute)

    def _begin(self) -> None:
        """After its end it begins a new pass over the dataset, as in TensorFlow; a generator goes on where it was."""
        if self._deleted:
            again = elements_of(self._dataset)
            self._source = self._source if again is self._dataset else again
            self._ahead = ReadAhead(self._source, self._prefetch_depth)
            self._taken = 0
        self._deleted = False

    def _end(self) -> None:
        self._deleted = True
        self._ahead.close()

    def get_next(self) -> Any:
        """Obsolete: loops take the elements. Always a `ValueError`."""
        raise InputError(
            "get_next() of an infeed queue is obsolete: loops take its elements",
            todo="pass the queue to ipu.loops.repeat or while_loop",
        )


class _LentQueue(IPUInfeedQueue):
    """A queue that shares everything with the one it was made from, which alone begins and ends."""

    @property
    def initializer(self) -> Operation:
        """Always a `RuntimeError`."""
        raise StateError(
            "An IPUInfeedQueue made from a specification is initialized already. "
            "To mend it: use the initializer of the queue the specification is of."
        )

    @property
    def deleter(self) -> Operation:
        """Always a `RuntimeError`."""
        raise StateError(
            "An IPUInfeedQueue made from a specification cannot be deleted. "
            "To mend it: use the deleter of the queue the specification is of."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InfeedSpec:
    """What a function is given to take elements from a queue: `_from_components` gives the queue without its ends."""

    queue: IPUInfeedQueue

    @property
    def value_type(self) -> type[IPUInfeedQueue]:
        """What it specifies."""
        return IPUInfeedQueue

    def _from_components(self, components: Any = ()) -> IPUInfeedQueue:
        return IPUInfeedQueue._from_type_spec(self)


def _on_device(dtype: str) -> str:
    return NARROWED.get(dtype, dtype)


def _text(types: Sequence[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in types)


def _check_spec(spec: Any) -> None:
    """The static shapes a tf dataset or one of ours declares must be known."""
    for leaf in jax.tree_util.tree_leaves(spec, is_leaf=lambda each: hasattr(each, "shape")):
        shape = getattr(leaf, "shape", ())
        if shape is not None and any(isinstance(size, list | tuple) for size in shape):
            raise InputError(
                f"an element of the dataset has the nested shape {shape}",
                expected="one shape of numbers for each array",
            )
        if shape is None or any(size is None for size in shape):
            raise InputError(
                f"an element of the dataset has shape {shape}, which is not fully defined",
                todo="batch with drop_remainder=True",
            )


class IPUIterator:
    """An iterator over an infeed queue for functions that run on the IPU: `next` gives the element as tensors."""

    def __init__(self, dataset: Any = None, infeed_spec: Any = None, element_spec: Any = None, **kwargs: Any) -> None:
        given = (infeed_spec is not None, element_spec is not None)
        if (dataset is None) != all(given) or (dataset is not None and any(given)):
            raise InputError(
                f"an IPUIterator is given dataset={short(dataset)}, infeed_spec={short(infeed_spec)} and "
                f"element_spec={short(element_spec)}",
                expected="a dataset, or both infeed_spec and element_spec",
            )
        if dataset is not None:
            self._infeed_queue = IPUInfeedQueue(dataset, **kwargs)
        elif kwargs:
            raise InputError(
                f"arguments of a queue, {', '.join(kwargs)}, are given beside infeed_spec, which has its own"
            )
        elif isinstance(infeed_spec, InfeedSpec):
            self._infeed_queue = infeed_spec._from_components()
        elif isinstance(infeed_spec, IPUInfeedQueue):
            self._infeed_queue = infeed_spec
        else:
            raise KindError(f"infeed_spec is {short(infeed_spec)}", expected="an IPUInfeedQueue, or its spec")
        self._element_spec = element_spec if dataset is None else self._infeed_queue.structure

    def __iter__(self) -> IPUIterator:
        return self

    def __next__(self) -> Any:
        """The next element."""
        return self.get_next()

    next = __next__

    def get_next(self) -> Any:
        """The next element; a `RuntimeError` outside a graph."""
        if not _graph.building():
            raise StateError(
                "Elements of an IPUIterator are read on the IPU. To mend it: read them in a function that runs there."
            )
        return self._infeed_queue._dequeue()

    def get_next_as_optional(self) -> Any:
        """Not supported: a `NotImplementedError`."""
        raise UnsupportedError("an IPUIterator does not give optional elements")

    def _gather_saveables_for_checkpoint(self) -> Any:
        """Not supported: a `NotImplementedError`."""
        raise UnsupportedError("an IPUIterator cannot be saved: its place in the dataset is the host's")

    @property
    def element_spec(self) -> Any:
        """What an element is made of."""
        return self._element_spec

    @property
    def infeed_spec(self) -> IPUInfeedQueue:
        """The queue behind it."""
        return self._infeed_queue


class IPUOwnedIterator(IPUIterator):
    """An iterator that owns its queue, and deletes it when it goes."""

    def __del__(self) -> None:
        queue = getattr(self, "_infeed_queue", None)
        if queue is not None:
            queue._end()


__all__ = ["IPUInfeedQueue", "IPUIterator", "IPUOwnedIterator"]
