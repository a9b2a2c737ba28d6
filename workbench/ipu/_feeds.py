"""What data queues share: datasets of any kind as elements of arrays, read ahead, and how they reach a body."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import numpy as np

from workbench.base.text import short
from workbench.engine.frontends.describe.name_stack import OPTIMISE_LATENCY, PREFETCH_DEPTH, attribute_scope
from workbench.errors import InputError, WorkbenchError
from workbench.ipu.config.config import in_force
from workbench.ipu.devices import device_number
from workbench.tf import _graph
from workbench.tf.data._of_keras import to_arrays

# Deeper buffers than this are refused (graphcore/tensorflow@b2127bba tensorflow/python/ipu/ipu_infeed_queue.py).
DEEPEST = 255
DEFAULT_DEPTH = 3


class FeedError(WorkbenchError, RuntimeError):
    """Data that a running program asked the host for and did not get, or not in the shape it was compiled for."""


class EndOfFeedError(FeedError):
    """A dataset that ran dry."""


def elements_of(dataset: Any) -> Iterator[Any]:
    """Elements of a dataset: arrays, or tuples and dicts of them.

    A Keras PyDataset is read batch by batch in its order; anything with `as_numpy_iterator` (tf.data) by that; anything
    else is iterated over, tensors of torch and others turned into arrays.
    """
    if hasattr(dataset, "as_numpy_iterator"):
        return iter(dataset.as_numpy_iterator())
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "num_batches"):
        return _batches(dataset)
    if not isinstance(dataset, Iterable) or isinstance(dataset, str | bytes | Mapping | Set):
        raise InputError(
            f"a dataset is {short(dataset)}",
            expected="something to iterate over: a list of arrays, a generator, a Keras PyDataset, a DataLoader",
        )
    return iter(dataset)


def _batches(dataset: Any) -> Iterator[Any]:
    number = dataset.num_batches
    count = number() if callable(number) else number
    for place in range(count) if count is not None else iter(int, 1):
        yield dataset[place]
    if hasattr(dataset, "on_epoch_end"):
        dataset.on_epoch_end()


END = object()


class ReadAhead:
    """Elements read in a thread of their own, in order, so that up to `depth` of them wait for whoever takes them."""

    def __init__(self, source: Iterator[Any], depth: int) -> None:
        self._source = source
        self._depth = depth
        self._waiting: deque[Future[Any]] = deque()
        self._reader = ThreadPoolExecutor(1, "infeed")  # its thread begins with the first element asked for

    def take(self) -> Any:
        """The next element, or `END`; what the dataset raised is raised here."""
        self._fill()
        element = self._waiting.popleft()
        self._fill()
        return element.result()

    def _fill(self) -> None:
        while len(self._waiting) < self._depth:
            self._waiting.append(self._reader.submit(next, self._source, END))

    def close(self) -> None:
        """Read no more."""
        self._reader.shutdown(wait=False, cancel_futures=True)


def types_of(element: Any) -> list[tuple[tuple[int, ...], str]]:
    """Shape and type of each array of an element."""
    return [(tuple(leaf.shape), str(leaf.dtype)) for leaf in jax.tree_util.tree_leaves(element)]


def body_arguments(element: Any) -> tuple[list[Any], dict[str, Any]]:
    """How an element of a queue reaches a body: a dict by name, a tuple one by one."""
    parts = list(element) if isinstance(element, list | tuple) else [element]
    if len(parts) == 1 and isinstance(parts[0], Mapping):
        return [], dict(parts[0])
    return parts, {}


@contextmanager
def feed_scopes(optimise_latency: bool, depth: int) -> Iterator[None]:
    """Tells the compiler of the feed that calls of the host made inside serve; `depth`: elements it has room for."""
    with ExitStack() as scopes:
        scopes.enter_context(jax.named_scope(attribute_scope(PREFETCH_DEPTH, str(depth))))
        if optimise_latency:
            scopes.enter_context(jax.named_scope(attribute_scope(OPTIMISE_LATENCY, "1")))
        yield


def check_depth(name: str, depth: Any) -> int:
    """A buffer depth from 1 to 255."""
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer):
        raise InputError(f"{name} is {depth!r}", expected=f"a whole number from 1 to {DEEPEST}")
    if not 0 < depth <= DEEPEST:
        edge = "greater than zero" if depth <= 0 else f"less than {DEEPEST + 1}"
        raise InputError(f"{name} must be {edge}, but it is {depth}")
    return int(depth)


def check_ordinal(ordinal: Any) -> int | None:
    """The number of a device, of one that is configured where a configuration is; None is that of the program."""
    if ordinal is None:
        return None
    if isinstance(ordinal, bool) or not isinstance(ordinal, int | np.integer):
        raise InputError(f"device_ordinal is {ordinal!r}", expected="an integer")
    if ordinal < 0:
        raise InputError(f"device_ordinal is {ordinal}", expected="a device that is there: device_ordinal >= 0")
    config = in_force()
    count = max(1, len(config.ipus_per_device)) if config is not None else None
    if count is not None and ordinal >= count:
        raise InputError(
            f"device_ordinal is {ordinal}, and /device:IPU:{ordinal} is not configured",
            expected=f"a number below {count}: so many devices are configured",
            todo="give config.auto_select_ipus an entry for each device, and configure it before",
        )
    return int(ordinal)


def check_program(queue: str, ordinal: int | None) -> None:
    """Refuse a queue, "infeed" or "outfeed", of one device where operations are made for another."""
    device = _graph.current_scopes().device
    here = device_number(device) if "IPU" in device.upper() else ordinal
    if ordinal is not None and here != ordinal:
        raise InputError(
            f"an {queue} queue of /device:IPU:{ordinal} is used in a program on /device:IPU:{here}",
            expected="a queue of the program's device",
            todo=f"make it with device_ordinal={here}, or the program in an ipu_scope of its device",
        )


__all__ = [
    "DEFAULT_DEPTH",
    "END",
    "EndOfFeedError",
    "FeedError",
    "ReadAhead",
    "body_arguments",
    "check_depth",
    "check_ordinal",
    "check_program",
    "elements_of",
    "feed_scopes",
    "to_arrays",
    "types_of",
]
