"""The stages of a pipelined entry: their calls, what arrives from elsewhere and what waits in FIFOs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from workbench.base.units import things_text
from workbench.engine.emit import Emitter
from workbench.engine.graph import RESIDENT_ROLES, Graph, Node, Value
from workbench.engine.graph.stages import StageCall, Turn, body_name, direction_of
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.program import Sequence as ProgramSequence
from workbench.errors import InputError

ONE_PLACE = frozenset({"parameter", "state", "seed"})  # roles of variables that cannot be on two IPUs


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A buffer on a stage's IPU for a value made elsewhere, and the tensor of the neighbour that fills it."""

    buffer: Tensor
    neighbour: int
    source: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Fifo:
    """What is kept of `current` past its turn: in `left` is what was current `slots` turns before.

    `stash` is the variable of the slots, None when there are none.
    """

    current: Tensor
    left: Tensor
    stash: int | None = None


@dataclass(slots=True)
class Stage:
    """The calls of one stage and what travels between them."""

    number: int
    ipu: int
    forward: Node
    recompute: Node | None = None
    backward: Node | None = None
    update: Node | None = None
    before: Node | None = None  # runs once, before all micro-batches; of the first stage alone
    after: Node | None = None  # runs once, after the updates; of the first stage alone
    received: dict[Value, Arrival] = field(default_factory=dict)  # value made elsewhere → its buffer here
    across: dict[Value, Tensor] = field(default_factory=dict)  # value → what an earlier stage of the IPU keeps for it
    fifos: list[Fifo] = field(default_factory=list)  # turn with the forward pass
    fifos_back: list[Fifo] = field(default_factory=list)  # turn with the backward pass
    stashed: dict[tuple[int, ...], Tensor] = field(default_factory=dict)  # variables → what backward reads instead
    inputs: dict[int, Tensor] = field(default_factory=dict)  # number of a parameter → its place in a body called twice

    def call(self, direction: str) -> Node | None:
        """The call of a direction, if the stage has one."""
        calls = {"forward": self.forward, "recompute": self.recompute, "backward": self.backward}
        return calls[direction]

    @property
    def reuses(self) -> bool:
        """Whether computing again runs the forward body."""
        return self.recompute is not None and self.recompute.calls == self.forward.calls

    def label(self, node: Node) -> str:
        """What a call is called: as its body, or when that is the forward pass's for its own direction."""
        again = self.reuses and node is self.recompute
        return body_name(self.number, direction_of(node)) if again else node.calls[0]

    def program(self, node: Node) -> str:
        """The name of what a call runs: its body, or of a body called twice the copies around it."""
        return f"{self.label(node)}_pass" if self.reuses and node is self.forward else self.label(node)

    @property
    def calls(self) -> tuple[Node, ...]:
        """All calls of the stage."""
        found = (self.before, self.forward, self.recompute, self.backward, self.update, self.after)
        return tuple(node for node in found if node is not None)


@contextmanager
def emitted(emit: Emitter, stage: Stage, name: str, *, empty: bool = True) -> Iterator[None]:
    """What is emitted inside becomes a function on the stage's IPU; without `empty` none when it is nothing."""
    with emit.inside(ipu=stage.ipu, stage=stage.number, function=name), emit.body() as collected:
        yield
    if collected or empty:
        emit.functions[name] = ProgramSequence(children=tuple(collected), name=name)


def stages_of(calls: Sequence[StageCall], devices: Sequence[int] = ()) -> list[Stage]:
    """The stages of an entry's calls, in order; `devices` is the IPU of each, default one each."""
    found: dict[int, dict[Turn, Node]] = {}
    for call in calls:
        found.setdefault(call.number, {})[call.direction] = call.node
    if devices and len(devices) != len(found):
        raise InputError(
            f"device_mapping has {things_text(len(devices), 'entry')} for {things_text(len(found), 'stage')}",
            expected="the IPU of each stage",
        )
    return [
        Stage(
            number=number,
            ipu=devices[number] if devices else number,
            forward=nodes["forward"],
            recompute=nodes.get("recompute"),
            backward=nodes.get("backward"),
            update=nodes.get("update"),
            before=nodes.get("before"),
            after=nodes.get("after"),
        )
        for number, nodes in sorted(found.items())
    ]


def check_one_place(graph: Graph, stages: Sequence[Stage]) -> None:
    """A variable used by stages on two IPUs is an `InputError` that names its layer."""
    read = [{value for node in stage.calls for value in node.operands} for stage in stages]
    for value, described in zip(graph.body.params, graph.inputs, strict=True):
        if described.role not in ONE_PLACE or described.role not in RESIDENT_ROLES:
            continue
        users = [stage for stage, values in zip(stages, read, strict=True) if value in values]
        if len({stage.ipu for stage in users}) > 1:
            _check_updates(described.name, value, users)
            where = ", ".join(f"stage {stage.number} on IPU {stage.ipu}" for stage in users)
            raise InputError(
                f"the variable {described.name!r} of the layer {described.layer!r} is used by {where}",
                expected="all stages that use a variable on one IPU",
                todo="move the layers that share it to one stage, or map their stages to one IPU by device_mapping",
            )


def _check_updates(variable: str, value: Value, users: Sequence[Stage]) -> None:
    """A variable that a stage has in its weight update alone is there by the optimizer, not by a layer of the stage."""
    tied = [stage for stage in users if all(node is stage.update for node in stage.calls if value in node.operands)]
    if tied and len(tied) < len(users):
        raise InputError(
            f"the weight update of stage {tied[0].number} on IPU {tied[0].ipu} has the variable {variable!r} of "
            "another IPU too: the optimizer ties the updates together, as a LossScaleOptimizer does, which updates all "
            "weights or none, and Keras' argument gradient_accumulation_steps of any optimizer",
            expected="an optimizer whose updates of the stages do not wait for each other",
            todo="make the optimizer without gradient_accumulation_steps and give them to wb.compile, or to "
            "set_pipelining_options as gradient_accumulation_steps_per_replica; else take another optimizer (in "
            "mixed_float16 Keras wraps that of the model: give optimizer= here, or compile a mixed model with "
            "auto_scale_loss=False), or map all stages to one IPU by device_mapping",
        )
