"""`tensorflow.python.ipu.ipu_outfeed_queue`: data that a program on the IPU gives the host as it runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.errors import InputError, StateError
from workbench.ipu._feeds import FeedError, check_ordinal, check_program, feed_scopes
from workbench.ipu._replicas import give
from workbench.ipu.config._flags import flags
from workbench.tf import _graph
from workbench.tf._function.recording import eager
from workbench.tf._graph import Effects, Operation
from workbench.tf._graph.convert import is_symbolic
from workbench.tf._graph.dtypes import holds_numbers
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.host import Failures

_numbers = itertools.count()


class IPUOutfeedMode(Enum):
    """What a dequeue gives: every element that was enqueued, or the last."""

    ALL = "all"
    LAST = "get_last"


class IPUOutfeedQueue:
    """Takes tensors, or tuples or dicts of them, from a running program to the host.

    `outfeed_mode`: `IPUOutfeedMode.ALL` unless said. `device_ordinal`: the device that gives them, None for that of the
    program. `buffer_depth`: elements that may wait on the host's side before the device does. `optimise_latency`:
    packets rather than copies. Errors: `ValueError` for arguments of a wrong type or value, a device that is not
    configured and, where it is enqueued to, a program on another device.
    """

    @checked
    def __init__(
        self,
        outfeed_mode: Any = None,
        device_ordinal: int | None = 0,
        buffer_depth: int = 3,
        optimise_latency: bool = False,
    ) -> None:
        self._outfeed_mode = IPUOutfeedMode.ALL if outfeed_mode is None else outfeed_mode
        if not isinstance(self._outfeed_mode, IPUOutfeedMode):
            raise InputError(
                f"outfeed_mode is {short(outfeed_mode)}, of type {type(outfeed_mode).__name__}",
                expected="an ipu_outfeed_queue.IPUOutfeedMode",
            )
        self._device_ordinal = check_ordinal(device_ordinal)
        if isinstance(buffer_depth, bool) or not isinstance(buffer_depth, int | np.integer) or buffer_depth <= 0:
            raise InputError(f"buffer_depth is {short(buffer_depth)}", expected="at least 1")
        self._buffer_depth = int(buffer_depth)
        self._optimise_latency = optimise_latency
        self._feed_name = str(next(_numbers))
        self._failures = Failures()
        self._operation: Operation | None = None
        self._structure: Any = None
        self._types: list[tuple[tuple[int, ...], str]] = []
        self._elements: list[list[np.ndarray[Any, Any]]] = []
        self._deleted = False

    # -- in a program ------------------------------------------------------------------------------------

    def enqueue(self, tensors: Any) -> Operation:
        """Give the host these tensors: one, a tuple or list, or a dict by name. Returns an operation, to be returned
        from the computation or waited for.

        Errors: `ValueError` for anything else, and for a queue that has been enqueued to or is another device's.
        """
        if self.enqueued:
            raise InputError("an outfeed queue can be enqueued to once", todo="make another queue for other tensors")
        check_program("outfeed", self._device_ordinal)
        flat, self._structure = jax.tree_util.tree_flatten(_checked(tensors))
        found = [as_tensor(each) for each in flat]
        self._types = [(_graph.known_shape(each), str(each._dtype)) for each in found]

        def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
            if not flags().synthetic("Outfeed"):
                with feed_scopes(self._optimise_latency, self._buffer_depth):
                    give(self._failures.guard(self._put, f"outfeed_{self._feed_name}"), values)
            return ()

        self._operation = Operation(
            "OutfeedEnqueue",
            found,
            (),
            compute,
            name=f"outfeed_{self._feed_name}",
            effects=Effects(queues=frozenset({self})),
        )
        return self._operation

    def put(self, values: Sequence[Any]) -> None:
        """Keep what a program gave to the host; synthetic data give nothing."""
        if not flags().synthetic("Outfeed"):
            self._put(*values)

    def _put(self, *values: Any) -> None:
        arrays = [np.array(value) for value in values]
        if self._outfeed_mode is IPUOutfeedMode.LAST:
            self._elements[:] = [arrays]
        else:
            self._elements.append(arrays)

    def take_failure(self) -> BaseException | None:
        """What the host's side raised since somebody last asked."""
        return self._failures.take()

    @property
    def enqueued(self) -> bool:
        """Whether something is enqueued to it in the graph that is being built."""
        return self._operation is not None and self._operation.graph.root is _graph.get_default_graph().root

    @property
    def buffer_depth(self) -> int:
        """Elements that may wait on the host's side."""
        return self._buffer_depth

    # -- on the host -------------------------------------------------------------------------------------

    @checked
    def dequeue(self, wait_for_completion: bool = False) -> Any:
        """What was enqueued and not dequeued yet, in the structure it was enqueued in.

        Mode ALL: the first dimension counts the elements; LAST: the last element. With several replicas their
        dimension comes next. In a graph these are tensors for a session; elsewhere arrays with `numpy()`.
        `wait_for_completion`: wait for the program that is running; here it always has ended.
        Errors: `ValueError` for a queue nothing is enqueued to; for LAST without an element, `FeedError`.
        """
        if self._operation is None:
            raise InputError(
                "an outfeed queue is dequeued, but nothing is enqueued to it",
                todo="call enqueue in the computation first",
            )
        if self._operation.graph.root is not _graph.get_default_graph().root:
            return jax.tree_util.tree_unflatten(self._structure, [eager(each) for each in self._drain()])
        many = self._outfeed_mode is IPUOutfeedMode.ALL
        types = [((None, *shape) if many else shape, dtype) for shape, dtype in self._types]
        with _graph.scoped(device="cpu", outside="", shard=None):
            made = Operation(
                "OutfeedDequeue",
                (),
                types,
                lambda run, values: self._drain(),
                effects=Effects(queues=frozenset({self})),
            )
        return jax.tree_util.tree_unflatten(self._structure, made.outputs)

    def _drain(self) -> list[Any]:
        if self._deleted:
            raise FeedError("the outfeed queue was deleted", todo="make a new IPUOutfeedQueue")
        taken, self._elements = self._elements, []
        if self._outfeed_mode is IPUOutfeedMode.ALL:
            columns = zip(*taken, strict=True) if taken else [()] * len(self._types)
            return [
                np.stack(column) if column else np.zeros((0, *shape), dtype if dtype != "bfloat16" else jnp.bfloat16)
                for column, (shape, dtype) in zip(columns, self._types, strict=True)
            ]
        if not taken:
            why = ", because data are synthetic (--use_synthetic_data)" if flags().synthetic("Outfeed") else ""
            raise FeedError(
                f"an outfeed queue in mode LAST has no last element{why}",
                todo="run the program that enqueues to it first" if not why else "leave out --use_synthetic_data",
            )
        return list(taken[-1])

    @property
    def deleter(self) -> Operation:
        """The operation that lets its resources go."""

        def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
            self._elements.clear()
            self._deleted = True
            return ()

        with _graph.scoped(device="cpu", outside="", after=()):
            return Operation("outfeed_delete", (), (), compute)

    def __iter__(self) -> Iterator[Any]:
        if self._outfeed_mode is not IPUOutfeedMode.ALL:
            raise StateError("Only an outfeed queue in mode ALL can be iterated over.")
        if self.enqueued:
            raise StateError(
                "An outfeed queue is iterated over in eager mode only. To mend it: dequeue it in a session."
            )
        return IPUOutfeedQueueIterator(self)


def _checked(tensors: Any) -> Any:
    if isinstance(tensors, dict):
        if not all(isinstance(key, str) for key in tensors):
            raise InputError(
                f"tensors is {short(tensors)}: the keys of an enqueued dictionary are not all strings",
                expected="strings",
            )
        values = list(tensors.values())
    else:
        values = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    if not values or not all(is_symbolic(each) or _is_array(each) for each in values):
        raise InputError(
            f"tensors is {short(tensors)}: what is enqueued is no tensor",
            expected="a tensor, a tuple of tensors, or a dictionary of them by name",
        )
    return tensors


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and holds_numbers(value)


class IPUOutfeedQueueIterator:
    """Elements of an outfeed queue, one at a time, as long as there are some."""

    @checked
    def __init__(self, outfeed_queue: IPUOutfeedQueue) -> None:
        self._queue = outfeed_queue
        self._waiting: list[Any] = []

    def __iter__(self) -> IPUOutfeedQueueIterator:
        return self

    def __next__(self) -> Any:
        if not self._waiting:
            flat = self._queue._drain() if self._queue._operation is not None else []
            count = len(flat[0]) if flat else 0
            tree = self._queue._structure
            self._waiting = [
                jax.tree_util.tree_unflatten(tree, [eager(column[number]) for column in flat])
                for number in range(count)
            ]
        if not self._waiting:
            raise StopIteration
        return self._waiting.pop(0)


class ScopedIPUOutfeedQueue(IPUOutfeedQueue):
    """An outfeed queue that is deleted when it goes; made outside graphs only, else a `RuntimeError`."""

    def __init__(self, outfeed_mode: IPUOutfeedMode | None = None, device_ordinal: int | None = None) -> None:
        if _graph.building():
            raise StateError("A ScopedIPUOutfeedQueue can only be made in eager mode.")
        super().__init__(outfeed_mode, device_ordinal)

    def __del__(self) -> None:
        self._deleted = True


__all__ = ["IPUOutfeedMode", "IPUOutfeedQueue", "IPUOutfeedQueueIterator", "ScopedIPUOutfeedQueue"]
