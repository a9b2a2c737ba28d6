"""A stage's body that runs twice, going forward and to compute again: what it reads and makes is copied around it.

What differs between the two calls (data, arrivals, state) is copied into places of the body's own, as the driver does;
what other stages, the host or later micro-batches read of the forward pass is copied out before the body runs again
(sources in reuse.py). Weights lie where they are for both.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.lower.pipeline.buffers import Buffers
from workbench.engine.lower.pipeline.stages import Stage, emitted
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.program import Call


def own_inputs(
    lowering: Lowering, buffers: Buffers, stage: Stage, overwritten: set[int]
) -> tuple[list[Tensor], list[tuple[Value, Tensor]]]:
    """Bind the parameters of the body; returns where its operands are, and those the host sends at this call first."""
    assert stage.recompute is not None
    function = lowering.graph.functions[stage.forward.calls[0]]
    real, arriving = list[Tensor](), list[tuple[Value, Tensor]]()
    pairs = zip(stage.forward.operands, stage.recompute.operands, function.params, strict=True)
    for number, (value, other, param) in enumerate(pairs):
        new = buffers.place(stage, value) not in buffers.placed
        tensor = buffers.operand(stage, value, param)
        real.append(tensor)
        if new and buffers.is_data(value) and value.elements:
            arriving.append((value, tensor))
        changes = value not in buffers.inputs or buffers.is_data(value) or value is not other
        if value.elements and (changes or number in overwritten):
            held = lowering.emit.variables[tensor.variables[0]]
            own = lowering.emit.tensor(f"{held.name}/read", value.shape, value.dtype, tensor.mapping, "activation")
            stage.inputs[number] = own
            tensor = own
        lowering.bind(param, tensor)
    return real, arriving


def forward_pass(
    lowering: Lowering, buffers: Buffers, stage: Stage, real: list[Tensor], carries: Mapping[int, int]
) -> None:
    """The forward pass: copies in, the body, copies out, new state."""
    emit, node = lowering.emit, stage.forward
    function = lowering.graph.functions[node.calls[0]]
    emit.move_all(f"{function.name}/read", [(real[number], own) for number, own in stage.inputs.items()])
    number_of = {param: number for number, param in enumerate(function.params)}
    outside = _read_outside(lowering, stage)
    leaving: list[tuple[Tensor, Tensor]] = []
    for number, (value, inner) in enumerate(zip(node.results, function.results, strict=True)):
        if number in carries:
            made = real[carries[number]]
        elif value not in outside or not value.elements:
            continue
        else:
            source = real[number_of[inner]] if inner in number_of else lowering.get(inner)
            name = f"{emit.variables[source.variables[0]].name}/{'before' if inner in number_of else 'result'}"
            made = emit.tensor(name, value.shape, value.dtype, source.mapping, "activation")
            if inner in number_of:
                emit.move_into(name, source, made)
            else:
                leaving.append((source, made))
        buffers.made[value] = (stage.number, made)
    _run(lowering, stage, node)
    leaving += [(lowering.get(function.results[result]), real[number]) for result, number in carries.items()]
    emit.move_all(f"{function.name}/result", leaving)


def compute_again(lowering: Lowering, buffers: Buffers, stage: Stage) -> None:
    """Computing again: what waited for it is copied in; the backward pass reads what the body makes where it is."""
    emit, node = lowering.emit, stage.recompute
    assert node is not None
    function = lowering.graph.functions[node.calls[0]]
    with emitted(emit, stage, stage.program(node)):
        moves = []
        for number, own in stage.inputs.items():
            tensor = buffers.operand(stage, node.operands[number], function.params[number])
            moves.append((stage.stashed.get(tensor.variables, tensor), own))
        emit.move_all(f"{function.name}/read", moves)
        _run(lowering, stage, node)
    for value, inner in zip(node.results, function.results, strict=True):
        buffers.made[value] = (stage.number, lowering.get(inner))


def _run(lowering: Lowering, stage: Stage, node: Node) -> None:
    lowering.emit.add(Call(function=node.calls[0], name=node.calls[0], ipu=stage.ipu))


def _read_outside(lowering: Lowering, stage: Stage) -> set[Value]:
    """Values of the entry that somebody reads."""
    body = lowering.graph.body
    return {value for node in body.nodes for value in node.operands} | set(body.results)
