"""Lower: the scheduled graph becomes a tile program; every value gets a place, every node its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.engine import ops
from workbench.engine.emit import Emitter
from workbench.engine.emit.context import Operator
from workbench.engine.graph import RESIDENT_ROLES, Graph, Input, Node, Value
from workbench.engine.graph.execution import is_execution
from workbench.engine.graph.origin import Origin
from workbench.engine.graph.stages import stage_calls
from workbench.engine.lower.driver import Driver
from workbench.engine.lower.in_place import InPlace
from workbench.engine.lower.io_tiles import apart, check_overlap, compute_target, io_tiles_of
from workbench.engine.lower.pipeline import lower_pipeline
from workbench.engine.lower.replay.bodies import StageBodies, StageBody
from workbench.engine.lower.roles import KIND_OF_ROLE
from workbench.engine.lower.synthetic import left_out
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.memory.footprint import StepSizes
from workbench.engine.options import Options
from workbench.engine.program import TileProgram
from workbench.engine.program.links import topology
from workbench.engine.program.remote_buffers import merged
from workbench.engine.target import Target
from workbench.engine.time.step_cost import StepCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A tile program for a target with what was lowered into it: operator rows, (primitive, layer) pairs without a
    model, how bodies of stages came to be, and what is known of what its steps take of memory and of time."""

    target: Target
    program: TileProgram
    operators: tuple[Operator, ...]
    unmodelled: tuple[tuple[str, str], ...]
    bodies: tuple[StageBody, ...]
    plans: dict[Node, object]
    sizes: StepSizes | None = None
    costs: StepCosts | None = None


def lower(
    graph: Graph,
    target: Target,
    options: Options,
    in_place: InPlace,
    *,
    ipus: int = 1,
    check: Callable[[], None] = lambda: None,
    bodies: StageBodies | None = None,
    earlier: StepSizes | None = None,
    costs: StepCosts | None = None,
) -> Lowered:
    """Lower the entry of a graph for `ipus` IPUs; `check` is called before each operator and may raise to cancel.

    `bodies` is what earlier lowerings of the same graph have made of its stages, `earlier` and `costs` what steps of an
    earlier program were found to take.
    """
    ops.load()
    io = io_tiles_of(options, target)
    within = compute_target(target, io)
    prefetched = bool(options.get("optimizations.prefetch_data_streams"))
    emit = Emitter(target=within, prefetched=prefetched)
    lowering = Driver(graph=graph, target=within, options=options, emit=emit, reuse=in_place.reuse, check=check)
    bodies, sizes = bodies or StageBodies(), StepSizes(within, earlier)
    lowering.of_nodes = bodies.of_nodes
    pipeline: dict[str, int | str] = {}
    _met_by_host(graph, emit, "launch")
    pipelined = bool(stage_calls(graph))
    (bodies.begin if pipelined else bodies.begin_anew)(lowering)
    placed = topology(str(options.get("selection_order")), ipus, pipelined=pipelined)
    timed = StepCosts(within, placed, ipus, costs)
    lowering.outliner.runs.sizes, lowering.outliner.runs.costs = sizes, timed
    if pipelined:
        mapping = options.get("pipeline.device_mapping")
        devices = mapping if isinstance(mapping, tuple) else (mapping,)  # an option of one value is that value
        pipeline = lower_pipeline(lowering, str(options.get("pipeline.schedule")), bodies, devices)
    else:
        _lower_whole(lowering)
    _met_by_host(graph, emit, "finish")
    check_overlap(io, str(options.get("pipeline.schedule")), ipus, pipelined=bool(pipeline))
    entry = emit.finish()
    program = TileProgram(
        name=graph.name,
        target=within,
        ipus=ipus,
        variables=tuple(emit.variables),
        functions=emit.functions,
        entry=entry,
        pipeline=pipeline,
        remote_buffers=merged(
            [each for each in emit.settled.values() if each.size_bytes],
            options.get("optimizations.merge_remote_buffers"),
        ),
        topology=placed,
    )
    return Lowered(
        target=target,
        program=apart(program, target, io),
        operators=tuple(lowering.operators),
        unmodelled=tuple(lowering.unmodelled),
        bodies=tuple(bodies.made) if pipeline else (),
        plans=lowering.plans,
        sizes=sizes,
        costs=timed,
    )


def _met_by_host(graph: Graph, emit: Emitter, name: str) -> None:
    """The host starts a program that it runs again and again, and waits for its end: a synchronisation with it each.

    What the host itself takes for it is not modelled, as it depends on the host.
    """
    if is_execution(graph):
        emit.sync("external", name)


def _lower_whole(lowering: Driver) -> None:
    """A model on one IPU, called once per batch."""
    graph = lowering.graph
    places: Any = graph.meta.get("input_shards") or (0,) * len(graph.inputs)
    for value, described, place in zip(graph.body.params, graph.inputs, places, strict=True):
        lowering.emit.ipu = place
        _place_input(value, described, lowering)
    lowering.emit.ipu = 0
    arriving = [
        (value, described)
        for value, described in zip(graph.body.params, graph.inputs, strict=True)
        if described.role not in RESIDENT_ROLES
        and value.elements
        and not left_out(graph, lowering.options, "to_device")
    ]
    if lowering.options.get("optimizations.merge_infeed_io_copies"):
        _load_inputs(arriving, lowering)
        lowering.lower_function(graph.body)
    else:
        _load_each_before_use(arriving, lowering)
    _write_back(lowering)
    _return_outputs(lowering)


def _place_input(value: Value, described: Input, lowering: Driver) -> None:
    resident = described.role in RESIDENT_ROLES
    mapping = lowering.wish(value) or lowering.default_mapping(value, turned=not resident)
    lowering.emit.origin = Origin(layer=described.layer)
    tensor = lowering.emit.tensor(
        described.name, value.shape, value.dtype, mapping, KIND_OF_ROLE[described.role], always_live=resident
    )
    lowering.emit.origin = Origin()
    lowering.bind(value, tensor)


def _load_inputs(arriving: Sequence[tuple[Value, Input]], lowering: Driver) -> None:
    """Copy what the host delivers for each call, all of it behind one barrier."""
    if arriving:
        lowering.emit.sync("external")
    for value, described in arriving:
        tensor = lowering.get(value)
        lowering.emit.ipu = tensor.ipu
        lowering.emit.stream(f"{described.name}/from_host", tensor, "to_device")
    lowering.emit.ipu = 0


def _load_each_before_use(arriving: Sequence[tuple[Value, Input]], lowering: Driver) -> None:
    """Lower the body; each input is copied by itself, before the first operator that reads it.

    The driver appends copies that are not merged to the sequence of their own instruction
    (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/visitors/deferred_visitor.cc:1723-1729).
    """
    waiting = {value: (value, described) for value, described in arriving}
    for node in lowering.graph.body.nodes:
        for operand in node.operands:
            if operand in waiting:
                _load_inputs([waiting.pop(operand)], lowering)
        lowering.lower_operator(node)
    for last in waiting.values():
        _load_inputs([last], lowering)


def _write_back(lowering: Driver) -> None:
    """New values of parameters and states that could not be computed in place are copied over the old ones."""
    graph = lowering.graph
    for output, value in zip(graph.outputs, graph.body.results, strict=True):
        if output.updates is None or not value.elements:
            continue
        old = lowering.get(graph.body.params[output.updates])
        new = lowering.get(value)
        if new.variables != old.variables:
            lowering.emit.ipu = old.ipu
            lowering.emit.origin = Origin(layer=graph.inputs[output.updates].layer, direction="update")
            lowering.emit.move_into(f"{output.name}/write_back", new, old)
    lowering.emit.ipu, lowering.emit.origin = 0, Origin()


def _return_outputs(lowering: Driver) -> None:
    graph = lowering.graph
    leaving: list[tuple[str, Tensor]] = [
        (output.name, lowering.get(value))
        for output, value in zip(graph.outputs, graph.body.results, strict=True)
        if output.updates is None and value.elements and not left_out(graph, lowering.options, "to_host")
    ]
    if leaving:
        lowering.emit.sync("external")
    for name, tensor in leaving:
        lowering.emit.ipu = tensor.ipu
        lowering.emit.stream(f"{name}/to_host", tensor, "to_host")
