"""What a pipeline takes from its infeed queue in one run, and what it gives its outfeed queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.ipu._pipeline.recorded import Recorded
from workbench.tf._graph import Tensor, known_shape


@dataclass(slots=True)
class Feed:
    """The elements of one run, a leaf at a time: behind each other along the first axis, as programs take them.

    Single numbers become a vector of all; `stacked` gives every leaf a first axis of elements. Replicas take turns at
    the queue, micro-batch by micro-batch; a leaf holds those of each replica together.
    """

    queue: Any
    count: int
    replicas: int = 1
    stacked: bool = False
    waiting: list[Any] = field(default_factory=list)

    @property
    def from_host(self) -> bool:
        """Elements are taken anew in each run: there is nothing to keep or to save."""
        return True

    @property
    def value(self) -> Any:
        """The next leaf; the first one takes the elements from the queue."""
        if not self.waiting:
            taken = self.queue.take_many(self.count * self.replicas)
            ordered = [each for replica in range(self.replicas) for each in taken[replica :: self.replicas]]
            columns = zip(*ordered, strict=True)
            self.waiting = [
                np.stack(leaves) if self.stacked else np.concatenate([*map(np.atleast_1d, leaves)])
                for leaves in columns
            ]
        return self.waiting.pop(0)

    def assign(self, value: Any) -> None:
        """Nothing is written to what came from the host."""


def giver(recorded: Recorded, others: Sequence[Tensor], replicas: int) -> Callable[[Sequence[Any]], Any]:
    """Gives the outputs of a run to the outfeed, an element for each micro-batch or their sum; `others` to the session.

    With several replicas an element holds what each of them gave, along a first dimension; the session is given those
    of the first.
    """
    asked, queue = recorded.asked, recorded.asked.outfeed
    count = 1 if asked.accumulate else int(asked.count) * int(asked.serial)
    shapes = [known_shape(tensor) for tensor in recorded.enqueued]

    def give(outputs: Sequence[Any]) -> tuple[Any, ...]:
        columns = []
        for value, shape in zip(outputs, shapes, strict=False):
            apart = np.asarray(value).reshape(replicas, count, *shape)
            columns.append(apart[0] if replicas == 1 else np.moveaxis(apart, 0, 1))
        for element in zip(*columns, strict=True):
            queue.put(element)
        beside = zip(outputs[len(shapes) :], others, strict=True)
        return tuple(np.asarray(value).reshape(replicas, *known_shape(tensor))[0] for value, tensor in beside)

    return give


__all__ = ["Feed", "giver"]
