"""Small pipelines of plain functions, run on the host under a schedule.

Numbers of the programs: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/tests/pipeline_visitor_test.cc,
pipeline_grouped_visitor_test.cc; tensorflow/python/ipu/tests/pipelining_test.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.engine.passes.staged_models import pipeline
from workbench.engine.compile import compile_graph
from workbench.engine.frontends.staging.scheduled import ScheduledProgram
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall, assemble
from workbench.engine.graph import Input, Output
from workbench.engine.options import Options
from workbench.engine.program import Call as ProgramCall
from workbench.engine.program import GlobalExchange, Overlap, Repeat, leaves
from workbench.engine.target import target
from workbench.engine.time.trace import TraceNode

Function = Callable[..., Any]


def _call(
    stage: int, direction: Any, run: Function, operands: Sequence[str], results: Sequence[str], types: dict[str, Any]
) -> StagedCall:
    closed = jax.make_jaxpr(lambda *values: list(run(*values)))(*(types[name] for name in operands))
    types.update(zip(results, (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in closed.out_avals), strict=True))
    return StagedCall(
        name=f"stage{stage}_{direction}",
        closed=closed,
        operands=tuple(operands),
        results=tuple(results),
        owners=("",) * len(results),
        stage=stage,
        direction=direction,
    )


def _run(
    calls: Sequence[StagedCall], data: Mapping[str, Any], types: Mapping[str, Any], out: str, count: int, **how: Any
) -> Any:
    program = Program(
        calls=tuple(calls),
        inputs=tuple(Input(name=name, role="input") for name in data),
        outputs=((Output(name=out), out),),
        types=types,
        micro_batches=count,
    )
    return np.asarray(ScheduledProgram(program, **how)(list(data.values()))[0])


def _tuples(a: Any) -> tuple[Any, Any]:
    """Hands on what is given plus a constant; keeps twice the constant."""
    constant = jnp.array([100.0, 2000.0])
    return a + constant, constant + constant


def _broadcast(a: Any) -> tuple[Any, Any]:
    """Hands on, and keeps, a number and the same number."""
    both = jnp.broadcast_to(a[0] + 100.0, (2,))
    return both, both


def _one(a: Any) -> tuple[Any, Any]:
    """Hands on, and keeps, a number and one."""
    return a[:1] + 1.0, a[:1] + 1.0


def _handed(a: Any) -> tuple[Any, Any]:
    """Hands on a number and one, and keeps one."""
    return a[:1] + 1.0, jnp.ones((1,))


# What the first stage does, then what the two passes of the second add.
PROGRAMS: Mapping[str, tuple[Function, Any, Any]] = {
    "tuple": (_tuples, [1.0, 2.0], [5.0, 10.0]),
    "bcast": (_broadcast, [1.0, 2.0], [5.0, 10.0]),
    "fifo": (_one, [1.0], [1.0]),
    "value": (_handed, [1.0], [1.0]),
}
COUNTS = {("Interleaved", "value"): 6, ("Interleaved", "fifo"): 4, ("Sequential", "value"): 6}  # else 8


def printed(kind: str, schedule: str) -> dict[str, Any]:
    """What the backward pass of the first of two stages makes, for every mini-batch, which all begin with zeros."""
    first, ahead, back = PROGRAMS[kind]
    count = COUNTS.get((schedule, kind), 8)
    types: dict[str, Any] = {"a": jax.ShapeDtypeStruct((2,), "float32")}
    calls = [
        _call(0, "forward", first, ["a"], ["handed", "kept"], types),
        _call(1, "forward", lambda x: (x + jnp.array(ahead),), ["handed"], ["made"], types),
        _call(1, "backward", lambda x: (x + jnp.array(back),), ["made"], ["gradient"], types),
        _call(0, "backward", lambda g, kept: (g + kept,), ["gradient", "kept"], ["printed"], types),
    ]
    data = {"a": np.zeros(2 * count, "float32")}
    found = _run(calls, data, types, "printed", count, schedule=schedule).reshape(count, -1)
    texts = ["[" + ", ".join(f"{value:g}" for value in row) + "]" for row in found.tolist()]
    same: Any = "; ".join(dict.fromkeys(texts)) if found.shape[1] > 1 else found[0, 0].item()
    return {"value": same, "count": len(found)}


def between_ipus_percent() -> float:
    """Of the steps that turn the FIFOs of all IPUs of a pipeline, the percentage that exchange between IPUs."""
    program = pipeline(("b",), 8).program
    bodies = [body for name, body in program.functions.items() if "_fifo" in name]
    steps = [step for body in bodies for step in leaves(body)]
    return 100 * sum(isinstance(step, GlobalExchange) for step in steps) / len(steps)


def losses_of(devices: Sequence[int], count: int = 12, wanted: int = 5) -> list[float]:
    """Three stages without training: a convolution of ones plus a second input; the sum plus 10.01; as it is.

    Batches of two out of 5 elements 0, 1, 2… over and over; the second input is (element + 10) / 2.
    """
    elements = np.arange(2 * count) % 5
    a = np.broadcast_to(elements[:, None, None, None], (2 * count, 4, 4, 2)).astype("float32")
    types: dict[str, Any] = dict.fromkeys(("a", "b"), jax.ShapeDtypeStruct((2, 4, 4, 2), "float32"))
    calls = [
        _call(0, "forward", lambda a, b: (a @ jnp.ones((2, 2)) + b,), ["a", "b"], ["x"], types),
        _call(1, "forward", lambda x: (x.sum()[None] + 10.01,), ["x"], ["y"], types),
        _call(2, "forward", lambda y: (y,), ["y"], ["loss"], types),
    ]
    found = _run(calls, {"a": a, "b": (a + 10) / 2}, types, "loss", count, schedule="Interleaved", devices=devices)
    return [round(float(loss), 2) for loss in found[:wanted]]


def worked_together(schedule: str, count: int) -> tuple[int, int]:
    """Cycles in which both IPUs of a pipeline of two stages that add have a stage running, and in which one has.

    A number and one on four tiles: what the passes hand on, and in the end what was kept.
    """
    types: dict[str, Any] = dict.fromkeys(("a", "out"), jax.ShapeDtypeStruct((1,), "float32"))
    calls = [
        _call(0, "forward", lambda a: (a + 1.0,), ["a"], ["handed"], types),
        _call(1, "forward", lambda x: (x + 1.0,), ["handed"], ["made"], types),
        _call(1, "backward", lambda x: (x + 1.0,), ["made"], ["gradient"], types),
        _call(0, "backward", lambda g, kept: (g + kept,), ["gradient", "handed"], ["out"], types),
    ]
    program = Program(
        calls=tuple(calls),
        inputs=tuple(Input(name=name, role="state") for name in ("a", "out")),
        outputs=((Output(name="out", role="update", updates=1), "out"),),
        types=types,
        micro_batches=count,
    )
    options = Options().with_values({"pipeline.schedule": schedule})
    compiled = compile_graph(assemble(program, {}), target("ipu2", tiles_per_ipu=4), options, ipus=2)
    columns = list(_columns(compiled.trace.entry, 1))
    both = sum(times * min(branches) for times, branches in columns if len(branches) == 2)
    return both, sum(times * max(branches) for times, branches in columns)


def _columns(node: TraceNode, times: int) -> Iterator[tuple[int, list[int]]]:
    """How often each column runs, and the cycles of the passes on each IPU: of additions, as was measured."""
    if isinstance(node.program, Overlap):
        if any(work in node.program.name for work in ("F0", "F1", "B0", "B1")):
            yield times, [_passes(child) for child in node.children]
        return
    more = node.program.times if isinstance(node.program, Repeat) else 1
    for child in node.children:
        yield from _columns(child, times * more)


def _passes(branch: TraceNode) -> int:
    calls = [child for child in branch.children if isinstance(child.program, ProgramCall)]
    return sum(call.cycles for call in calls if getattr(call.program, "direction", ""))  # turns of FIFOs have none
