"""What an operator family sees while it lowers a node: the values placed so far, plans, wishes and the emitter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench.base.arrays import ceil_div
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.emit.emitter import Emitter
from workbench.engine.graph import Function, Graph, Node, Value
from workbench.engine.mapping import Mapping, linear
from workbench.engine.mapping.tensor import Tensor
from workbench.errors import VerificationError

if TYPE_CHECKING:
    from workbench.engine.options import Options
    from workbench.engine.target import Target


LEAST_BYTES = 128  # of a tensor on a tile, PopLibs' default
LINEAR_PLACES = 8  # first tiles at which linear mappings begin
MOST_OF_MEAN = 1.3  # shares of a tensor on one tile that still pass for even


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One row of `.operators`: a node of the graph as the user thinks of it. A loop's has the steps around its body."""

    id: str
    name: str
    layer: str
    direction: str
    op: str
    flops: int
    plan: str
    modelled: bool
    plan_cycles: int = 0  # what its planner charges for one run; 0 where none counts cycles
    bound: Callable[[Options], int] | None = None  # asks for the temporary bytes on a tile that options allow, if any
    body: str = ""  # the outlined function it calls, shared with equal operators
    repeated: Table[int, int] = field(default_factory=dict)  # step: runs in one run of the operator, where not 1


@dataclass(slots=True)
class Lowering(ABC):
    """State of one lowering. Families read `get`, place results with `result`, emit through `emit`.

    What runs it, with which families, is above (`lower/driver.py`).

    `destinations` maps a result to memory that exists already and is free for it.

    `reuse` maps a result to the operand whose memory it may take. `wishes` maps a value to the mapping
    its readers would like. `plans` maps a node to what its family planned for it, `of_nodes` to what its family read of
    it alone, which later lowerings of the graph take over.
    `names` counts the operators of each label, `next_tile` is where linear mappings of each IPU begin next.
    """

    graph: Graph
    target: Target
    options: Options
    emit: Emitter
    reuse: Table[Value, Value] = field(default_factory=dict)
    wishes: Table[Value, Mapping] = field(default_factory=dict)
    summed_halves: set[Value] = field(default_factory=set)
    destinations: dict[Value, Tensor] = field(default_factory=dict)
    homes: dict[str, tuple[Value, Tensor]] = field(default_factory=dict)  # loaded variables, by key of their load
    plans: dict[Node, Any] = field(default_factory=dict)
    of_nodes: dict[Node, Any] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    unmodelled: list[tuple[str, str]] = field(default_factory=list)
    _tensors: dict[Value, Tensor] = field(default_factory=dict)
    bound: list[Value] = field(default_factory=list)  # values as they are placed, and again where that is taken back
    names: dict[str, int] = field(default_factory=dict)
    next_tile: dict[int, int] = field(default_factory=dict)

    @property
    def tiles(self) -> int:
        """Tiles of one IPU."""
        return self.target.tiles_per_ipu

    # -- values ------------------------------------------------------------------------------------------

    def get(self, value: Value) -> Tensor:
        """Where the value is; reading one that was never placed is a defect of the schedule."""
        try:
            return self._tensors[value]
        except KeyError:
            raise VerificationError(f"{value} is read before it is placed") from None

    def has(self, value: Value) -> bool:
        """Whether the value has been placed."""
        return value in self._tensors

    def bind(self, value: Value, tensor: Tensor) -> None:
        """Say where the value is."""
        if tensor.shape != value.shape:
            raise VerificationError(f"{value} is bound to {tensor}")
        self._tensors[value] = tensor
        self.bound.append(value)

    def marked(self) -> Callable[[], None]:
        """Remember what has been placed and emitted; the answer forgets everything made since, outside open bodies."""
        emit, tensors, next_tile = self.emit, self._tensors.copy(), self.next_tile.copy()
        variables, step, repeated = len(emit.variables), emit.next_step, dict(emit.repeated)
        bound = len(self.bound)

        def back() -> None:
            del emit.variables[variables:]
            emit.next_step, emit.repeated = step, repeated
            self.bound += self.bound[bound:]
            self._tensors, self.next_tile = tensors, next_tile

        return back

    def body(self, node: Node, number: int = 0) -> Function:
        """The function a node calls."""
        return self.graph.functions[node.calls[number]]

    def default_mapping(
        self, value: Value, *, dtype: str = "", least_bytes: int = LEAST_BYTES, turned: bool = False
    ) -> Mapping:
        """PopLibs' linear mapping, beginning behind the last one, so that small tensors spread over the tiles.

        The driver keeps the next tile to map to for each IPU (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/
        poplar/driver/tools/mapping_helper.cc); here it moves on to the next of a few places, which keeps layouts few.
        `turned`: as the driver maps an input of which nobody says where it should lie, by the tiles it takes, so that
        it is on w of them from tile w on unless it takes all (`MapTensorLinearlyImpl`, the same file).
        Every tile in use gets `least_bytes` in whole vectors, both counted in `dtype` (default: the value's own,
        float for halves that are summed).
        """
        first = self.next_tile.get(self.emit.ipu, 0)
        counted = dtype or ("float32" if value in self.summed_halves else value.dtype)

        def spread(first: int) -> Mapping:
            vector = self.target.data_path_bytes
            return linear(value.shape, counted, self.tiles, least_bytes, first, vector_bytes=vector)

        mapping = spread(first)
        step = ceil_div(self.tiles, LINEAR_PLACES)
        moved = first + ceil_div(mapping.tiles_used, step) * step
        self.next_tile[self.emit.ipu] = moved if moved < self.tiles else 0
        return spread(mapping.tiles_used) if turned else mapping

    def is_even(self, mapping: Mapping, dtype: str) -> bool:
        """Whether no tile holds much more than an equal share, or little anyhow."""
        most = int(mapping.bytes_per_tile(ITEMSIZE_BYTES[dtype], self.tiles).max(initial=0))
        return most <= MOST_OF_MEAN * mapping.size * ITEMSIZE_BYTES[dtype] / self.tiles + LEAST_BYTES

    def is_model(self, tensor: Tensor) -> bool:
        """Whether what is made of the tensor may lie as it does.

        A variable was placed as it is for a reason. Tiles chosen for a whole are no good for a part of it that few of
        them hold, nor are those of several variables that meet on some.
        """
        held = sum(self.emit.variables[name].size_bytes for name in tensor.variables)
        whole = len(tensor.variables) == 1 and held == tensor.elements * tensor.itemsize_bytes
        return tensor.mapping.is_owner and (whole or self.is_even(tensor.mapping, tensor.dtype))

    def wish(self, value: Value) -> Mapping | None:
        """The mapping the readers of the value would like, if any said so."""
        return self.wishes.get(value)

    def reusable(self, value: Value) -> Tensor | None:
        """The tensor whose memory this result may take."""
        operand = self.reuse.get(value)
        return None if operand is None or not self.has(operand) else self.get(operand)

    def result(self, node: Node, number: int, mapping: Mapping, *, name: str = "") -> Tensor:
        """Place result `number`: over the operand it may overwrite if that has this mapping, else in new memory."""
        value = node.results[number]
        if value in self.destinations:
            self.bind(value, self.destinations[value])
            return self.destinations[value]
        old = self.reusable(value)
        if old is not None and old.mapping == mapping and old.itemsize_bytes == value.itemsize_bytes:
            tensor = replace(old, shape=value.shape, dtype=value.dtype)
        else:
            tensor = self.emit.tensor(
                name or self.label(node), value.shape, value.dtype, mapping, self.emit.result_kind()
            )
        self.bind(value, tensor)
        return tensor

    def label(self, node: Node) -> str:
        """A name for people: the layer and what is done there."""
        return f"{node.origin.layer or self.graph.name}/{self.word(node)}"

    # -- running -----------------------------------------------------------------------------------------

    @abstractmethod
    def word(self, node: Node) -> str:
        """What is done, in the field's words."""

    @abstractmethod
    def lower_function(self, function: Function, *, operators: bool = True) -> None:
        """Lower every node of a body in order; with `operators` each becomes a row of `.operators`."""

    @abstractmethod
    def lower_operator(self, node: Node) -> None:
        """Lower a node as an operator of its own."""

    @abstractmethod
    def lower_node(self, node: Node) -> None:
        """Lower a node in the context of its origin."""

    def at(self, node: Node) -> AbstractContextManager[None]:
        """Stamp what is emitted inside with the node's origin, and with its IPU, if a scope gave it one."""
        return self.emit.inside(origin=node.origin, ipu=None if node.origin.shard < 0 else node.origin.shard)

    def on_shard(self, node: Node) -> AbstractContextManager[None]:
        """What is emitted inside is on the node's IPU, if a scope gave it one."""
        return self.emit.inside(ipu=None if node.origin.shard < 0 else node.origin.shard)

    def operands(self, node: Node) -> Sequence[Tensor]:
        """The placed operands."""
        return [self.get(value) for value in node.operands]
