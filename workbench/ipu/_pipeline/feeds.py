"""What a pipeline takes from its infeed queue in one run and gives its outfeed queue, and passes over several elements.

Batch serialisation: each pass of a stage runs over several elements in a loop; what other passes read is in buffers. A
pass takes the slice of its turn from the buffers other passes have filled, and fills its own; sums and other state go
from turn to turn. Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/
pipeline_batch_serialization_buffer_inserter.cc, pipeline_batch_serialization_loop_inserter.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend
import numpy as np

from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall
from workbench.errors import InputError
from workbench.ipu._pipeline.recorded import Recorded
from workbench.tf._graph import Tensor, known_shape
from workbench.tf._graph.marks import stage_scope


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


FED = ("input", "target")


def serialised(program: Program, times: int, replicas: int = 1) -> Program:
    """The program with `times` elements in each pass: data and results have them along a new first dimension."""
    if times == 1:
        return program
    resident = program.prepared.union(item.name for item in program.inputs if item.role not in FED)
    types = {
        name: kind if name in resident else jax.ShapeDtypeStruct((times, *kind.shape), kind.dtype)
        for name, kind in program.types.items()
    }
    calls = []
    for call in program.calls:
        if call.repeated:
            calls.append(_looped(call, resident, times, replicas, program.types))
            continue
        fed = [name for name in call.operands if name not in resident]
        if fed:
            raise InputError(
                f"the optimizer uses {fed[0]}, of which a serialised batch has {times}",
                expected="what is the same for the whole update, such as a learning rate",
                todo="pass it in inputs",
            )
        calls.append(call)
    return replace(program, calls=tuple(calls), types=types)


def _looped(
    call: StagedCall, resident: frozenset[str], times: int, replicas: int, types: Mapping[str, Any]
) -> StagedCall:
    """The call over `times` slices; resident results are carried from one to the next."""
    carried = [name for name in call.results if name in resident]
    shared = [name for name in call.operands if name in resident and name not in carried]
    sliced = [name for name in call.operands if name not in resident]
    run = jax.extend.core.jaxpr_as_fun(call.closed)

    def loop(*values: Any) -> list[Any]:
        held = dict(zip(shared, values, strict=False))
        first = list(values[len(shared) : len(shared) + len(carried)])

        def turn(state: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
            env = {**held, **dict(zip(carried, state, strict=True)), **dict(zip(sliced, slices, strict=True))}
            made = dict(zip(call.results, run(*(env[name] for name in call.operands)), strict=True))
            return [made[name] for name in carried], [made[name] for name in call.results if name not in resident]

        last, filled = jax.lax.scan(turn, first, list(values[len(shared) + len(carried) :]), length=times)
        states, buffers = iter(last), iter(filled)
        return [next(states if name in resident else buffers) for name in call.results]

    one = {**types, **dict(zip(call.operands, call.closed.in_avals, strict=True))}
    operands = (*shared, *carried, *sliced)
    leading = [*((),) * (len(operands) - len(sliced)), *((times,),) * len(sliced)]
    closed = jax.make_jaxpr(loop, axis_env=axes(replicas))(
        *(
            jax.ShapeDtypeStruct((*more, *one[name].shape), one[name].dtype)
            for more, name in zip(leading, operands, strict=True)
        )
    )
    owners = tuple(
        owner if name in resident else stage_scope(call.stage)
        for name, owner in zip(call.results, call.owners, strict=True)
    )
    return replace(call, closed=closed, operands=operands, owners=owners)


__all__ = ["Feed", "giver", "serialised"]
