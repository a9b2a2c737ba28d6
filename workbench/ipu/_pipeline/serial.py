"""Batch serialisation: each pass of a stage runs over several elements in a loop; what other passes read is in buffers.

A pass takes the slice of its turn from the buffers other passes have filled, and fills its own; sums and other state
go from turn to turn. Source: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/
pipeline_batch_serialization_buffer_inserter.cc, pipeline_batch_serialization_loop_inserter.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.extend

from workbench.engine.frontends.describe.replicas import axes
from workbench.engine.frontends.trace.staged_calls import Call, Program
from workbench.errors import InputError
from workbench.tf._marks import stage_scope

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


def _looped(call: Call, resident: frozenset[str], times: int, replicas: int, types: Mapping[str, Any]) -> Call:
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


__all__ = ["serialised"]
