"""Loops, branches and calls: bodies are lowered once, in a `Repeat` or an `If`, over the memory of what they carry.

A carry has one memory that every iteration overwrites. What a scan consumes is sliced, and what it produces is
stacked, by dynamic slices and updates at a counter that every iteration tells all tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value
from workbench.engine.mapping import Mapping, demand, on_tile, reshape
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.ops import Family, register, same_type
from workbench.engine.ops.dynamic_slice import (
    SLICE,
    UPDATE,
    first_axis_table,
    home_of,
    slice_groups,
    slice_mapping,
    sliceable,
    spread_columns,
)
from workbench.engine.ops.free import fill_groups
from workbench.engine.ops.rows import RowTable
from workbench.engine.program import If, Program, Repeat, VertexGroup
from workbench.engine.program import Sequence as ProgramSequence

if TYPE_CHECKING:
    from collections.abc import Iterator


class Scan(Family):
    """A loop of known length over slices, with carries and stacked results."""

    name = "scan"
    ops = frozenset({"scan"})
    alone = True

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """A carry may take the memory of its first value."""
        first = int(node.attr("num_consts", 0))
        return _same_types(node, [(number, first + number) for number in range(int(node.attr("num_carry", 0)))])

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """Constants and carries as the body wishes, what is sliced with its first axis whole."""
        body = lowering.body(node)
        kept = int(node.attr("num_consts", 0)) + int(node.attr("num_carry", 0))
        found = _body_wishes(body.params[:kept], lowering)
        for number in range(kept, len(node.operands)):
            value, table = node.operands[number], first_axis_table(node.operands[number])
            wish = lowering.wish(body.params[number])
            if wish is not None and wish.is_owner and wish.size:
                found[number] = _stacked(table, wish, value.dtype, lowering)
            else:
                found[number] = sliceable(table, value.dtype, lowering)
        return found

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """How often the body runs; what it does has rows of its own."""
        return f"repeated {node.times} times"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Place carries and stacks, lower the body once, repeat it."""
        body, label = lowering.body(node), lowering.label(node)
        consts, carried = int(node.attr("num_consts", 0)), int(node.attr("num_carry", 0))
        for value, param in zip(node.operands[:consts], body.params, strict=False):
            lowering.bind(param, lowering.get(value))
        carries = _carries(node, lowering, consts, carried)
        for carry, param in zip(carries, body.params[consts:], strict=False):
            lowering.bind(param, carry)
        loop = _Loop(lowering, label, _counter(label, lowering) if _counts(node, carried) else None)
        sliced = [loop.held(lowering.get(value)) for value in node.operands[consts + carried :]]
        first = lowering.emit.next_step
        lowering.emit.next_step += len(node.results) - carried
        with lowering.emit.body() as collected:
            loop.tell()
            for held, param in zip(sliced, body.params[consts + carried :], strict=True):
                lowering.bind(param, loop.slice(held, param))
            lowering.lower_function(body)
            stacks = [
                loop.stack(node, number, lowering.get(value))
                for number, value in enumerate(body.results[carried:], start=carried)
            ]
            assign(label, [(lowering.get(v), c) for v, c in zip(body.results, carries, strict=False)], lowering)
            loop.count()
        with _numbered_from(first, lowering):
            for stack in stacks:
                groups = fill_groups(
                    stack.elements_per_tile(lowering.tiles), stack.dtype, lowering.target.workers_per_tile
                )
                lowering.emit.compute(f"{label}/clear", groups, (), stack.variables)
        _repeat(node, collected, lowering)


class While(Family):
    """A loop until a condition fails; run as often as told, once when nobody can tell."""

    name = "while"
    ops = frozenset({"while"})
    alone = True

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """A carry may take the memory of its first value."""
        first = _while_consts(node)
        return _same_types(node, [(number, first + number) for number in range(len(node.results))])

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """As the loop's body wishes."""
        skipped = int(node.attr("cond_consts", 0))
        found = _body_wishes(lowering.body(node, 1).params, lowering)
        return {skipped + number: mapping for number, mapping in found.items()}

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """How often condition and body run; what they do has rows of its own."""
        return "repeated" if node.attr("unknown_trip_count", False) else f"repeated {node.times} times"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Place the carries; condition and body once; repeat them."""
        label = lowering.label(node)
        condition, body = lowering.body(node, 0), lowering.body(node, 1)
        cond_consts, first = int(node.attr("cond_consts", 0)), _while_consts(node)
        outer = [lowering.get(value) for value in node.operands[:first]]
        carries = _carries(node, lowering, first, len(node.results))
        for function, consts in ((condition, outer[:cond_consts]), (body, outer[cond_consts:])):
            for param, tensor in zip(function.params, (*consts, *carries), strict=True):
                lowering.bind(param, tensor)
        with lowering.emit.body() as collected:
            lowering.lower_function(condition)
            lowering.lower_function(body)
            assign(label, [(lowering.get(v), c) for v, c in zip(body.results, carries, strict=True)], lowering)
        _repeat(node, collected, lowering, unknown_times=bool(node.attr("unknown_trip_count", False)))


class Branch(Family):
    """One of several bodies; all write the same results."""

    name = "cond"
    ops = frozenset({"cond"})
    alone = True

    def in_place(self, node: Node) -> tuple[tuple[int, int], ...]:
        """A result may take the memory of any operand of its type; updates of parameters are tried first."""
        pairs = [(result, operand) for result in range(len(node.results)) for operand in range(1, len(node.operands))]
        return _same_types(node, pairs)

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """As the first branch that has a wish."""
        found: dict[int, Mapping] = {}
        for number in range(len(node.calls)):
            wishes = _body_wishes(lowering.body(node, number).params, lowering)
            found = {operand + 1: mapping for operand, mapping in wishes.items()} | found
        return found

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Lower every branch over the operands and move what it returns into the results."""
        label = lowering.label(node)
        outer = {name for value in node.operands for name in lowering.get(value).variables}
        arms: list[Program] = []
        targets: list[Tensor] = []
        for number in range(len(node.calls)):
            body = lowering.body(node, number)
            for value, param in zip(node.operands[1:], body.params, strict=True):
                lowering.bind(param, lowering.get(value))
            with lowering.emit.body() as collected:
                lowering.lower_function(body)
                made = [lowering.get(value) for value in body.results]
                if not number:
                    targets = _branch_results(node, made, outer, lowering)
                assign(label, list(zip(made, targets, strict=True)), lowering)
            arms.append(ProgramSequence(children=tuple(collected), name=body.name))
        lowering.emit.add(If(arms=tuple(arms), name=label))


class Calls(Family):
    """A body called from another body."""

    name = "call"
    ops = frozenset({"call"})
    operators = True  # whether what the body does has rows of its own
    alone = True

    def layouts(self, node: Node, lowering: Lowering) -> dict[int, Mapping]:
        """As the body wishes."""
        return _body_wishes(lowering.body(node).params, lowering)

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Lower the body over the operands, repeated if it is called several times."""
        body = lowering.body(node)
        for value, param in zip(node.operands, body.params, strict=True):
            lowering.bind(param, lowering.get(value))
        with lowering.emit.body() as collected:
            lowering.lower_function(body, operators=self.operators)
        for value, inner in zip(node.results, body.results, strict=True):
            lowering.bind(value, lowering.get(inner))
        if node.times > 1:
            _repeat(node, collected, lowering)
            return
        for program in collected:
            lowering.emit.add(program)


# -- carries ---------------------------------------------------------------------------------------------


def _same_types(node: Node, pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(pair for pair in pairs if same_type(node.results[pair[0]], node.operands[pair[1]]))


def _body_wishes(params: Sequence[Value], lowering: Lowering) -> dict[int, Mapping]:
    wishes = {number: lowering.wish(param) for number, param in enumerate(params)}
    return {number: wish for number, wish in wishes.items() if wish is not None}


def _while_consts(node: Node) -> int:
    return int(node.attr("cond_consts", 0)) + int(node.attr("body_consts", 0))


def _carries(node: Node, lowering: Lowering, first: int, count: int) -> list[Tensor]:
    """The memory of each carry, holding its first value: the operand's own if it may be overwritten, else a copy."""
    found = []
    for number in range(count):
        value = node.operands[first + number]
        source = lowering.get(value)
        mapping = source.mapping if source.mapping.is_owner else lowering.default_mapping(value)
        with _on_ipu_of(source, lowering):
            carry = lowering.result(node, number, mapping)
            if carry.variables != source.variables:
                lowering.emit.move_into(f"{lowering.label(node)}/start", source, carry)
        found.append(carry)
    return found


def assign(label: str, pairs: Sequence[tuple[Tensor, Tensor]], lowering: Lowering) -> None:
    """Give every target the value of its source, all at once: a source that a target overwrites is saved first."""
    moves = [(source, target) for source, target in pairs if not _is_at(source, target)]
    overwritten = {name for _, target in moves for name in target.variables}
    saved = []
    for source, target in moves:
        if overwritten.intersection(source.variables):
            with _on_ipu_of(source, lowering):
                copy = lowering.emit.tensor(f"{label}/saved", source.shape, source.dtype, source.mapping, "temporary")
                lowering.emit.move_into(f"{label}/save", source, copy)
            source = copy
        saved.append((source, target))
    for source, target in saved:
        with _on_ipu_of(target, lowering):
            lowering.emit.move_into(f"{label}/carry", source, target)


@contextmanager
def _on_ipu_of(tensor: Tensor, lowering: Lowering) -> Iterator[None]:
    """What is emitted inside is on the tensor's IPU: a loop over several has carries on each of them."""
    previous, lowering.emit.ipu = lowering.emit.ipu, tensor.ipu
    try:
        yield
    finally:
        lowering.emit.ipu = previous


def _is_at(source: Tensor, target: Tensor) -> bool:
    return not target.elements or (source.variables == target.variables and source.mapping == target.mapping)


def _branch_results(node: Node, made: Sequence[Tensor], outer: set[int], lowering: Lowering) -> list[Tensor]:
    """Where a branch's results go: over an operand, else where the first branch made them, else in new memory."""
    targets: list[Tensor] = []
    taken = set(outer)
    for number, (value, tensor) in enumerate(zip(node.results, made, strict=True)):
        old = lowering.reusable(value)
        if old is not None and old.mapping.is_owner:
            lowering.bind(value, old)
        elif tensor.mapping.is_owner and not taken.intersection(tensor.variables):
            lowering.bind(value, tensor)
        else:
            lowering.result(node, number, tensor.mapping)
        targets.append(lowering.get(value))
        taken.update(targets[-1].variables)
    return targets


# -- loops -----------------------------------------------------------------------------------------------


def _repeat(node: Node, collected: list[Program], lowering: Lowering, *, unknown_times: bool = False) -> None:
    label = lowering.label(node)
    body = ProgramSequence(children=tuple(collected), name=label)
    lowering.emit.add(Repeat(times=node.times, body=body, name=label, unknown_times=unknown_times))


def _counts(node: Node, carried: int) -> bool:
    """Whether anything is sliced or stacked, so that the iteration's number is needed on tiles."""
    sliced = len(node.operands) - int(node.attr("num_consts", 0)) - carried
    return sliced > 0 or len(node.results) > carried


def _counter(label: str, lowering: Lowering) -> Tensor:
    """The number of the iteration, on tile 0, starting at zero."""
    counter = lowering.emit.tensor(f"{label}/counter", (), "int32", on_tile((), 0), "temporary")
    groups = fill_groups(counter.elements_per_tile(lowering.tiles), "int32", lowering.target.workers_per_tile)
    lowering.emit.compute(f"{label}/counter", groups, (), counter.variables)
    return counter


@contextmanager
def _numbered_from(first: int, lowering: Lowering) -> Iterator[None]:
    """Steps emitted inside take the numbers kept for them before the body was lowered."""
    after, lowering.emit.next_step = lowering.emit.next_step, first
    try:
        yield
    finally:
        lowering.emit.next_step = after


@dataclass(slots=True)
class _Loop:
    """What an iteration of a scan does with its counter."""

    lowering: Lowering
    label: str
    counter: Tensor | None
    told: Tensor | None = None

    def held(self, source: Tensor) -> Tensor:
        """What is sliced, brought once to where its first axis is whole."""
        table = first_axis_table(_like(source))
        home = home_of(table, source, self.lowering)
        (held,) = self.lowering.emit.rearrange(self.label, [(source, home)])
        return held.view(home, held.shape) if held is not source else source

    def tell(self) -> None:
        """Tell every tile the number of the iteration."""
        if self.counter is None:
            return
        tiles = np.arange(self.lowering.tiles, dtype=np.int64)
        wanted = demand((), tiles, 0 * tiles, 0 * tiles + 1)
        (self.told,) = self.lowering.emit.rearrange(f"{self.label}/counter", [(self.counter, wanted)])

    @property
    def _number(self) -> tuple[int, ...]:
        return () if self.told is None else self.told.variables

    def slice(self, held: Tensor, param: Value) -> Tensor:
        """This iteration's entry of a stacked operand."""
        table, emit = first_axis_table(_like(held)), self.lowering.emit
        mapping = reshape(slice_mapping(table, held.mapping), param.shape)
        result = emit.tensor(f"{self.label}/slice", param.shape, param.dtype, mapping, "temporary")
        groups = slice_groups(SLICE, table, held.mapping, DTYPE_WORDS[held.dtype], self.lowering.tiles)
        emit.compute(f"{self.label}/slice", groups, (*held.variables, *self._number), result.variables)
        return result

    def stack(self, node: Node, number: int, entry: Tensor) -> Tensor:
        """Write this iteration's entry of a stacked result, every column where the entry has it."""
        value, lowering = node.results[number], self.lowering
        table = first_axis_table(value)
        where = entry.mapping if entry.mapping.is_owner else lowering.default_mapping(_like(entry))
        stack = lowering.result(node, number, _stacked(table, where, value.dtype, lowering))
        groups = slice_groups(UPDATE, table, stack.mapping, DTYPE_WORDS[stack.dtype], lowering.tiles)
        held = reshape(slice_mapping(table, stack.mapping), entry.shape)
        (entry,) = lowering.emit.rearrange(f"{self.label}/stack", [(entry, held)])
        reads = (*entry.variables, *self._number, *stack.variables)
        lowering.emit.compute(f"{self.label}/stack", groups, reads, stack.variables)
        return stack

    def count(self) -> None:
        """Advance the counter."""
        if self.counter is None:
            return
        tile = tile_set(np.array([0]))
        groups = [VertexGroup("popops::ForLoopCounter", (("type", "int"),), tile)]
        self.lowering.emit.compute(f"{self.label}/count", groups, self.counter.variables, self.counter.variables)


def _stacked(table: RowTable, entry: Mapping, dtype: str, lowering: Lowering) -> Mapping:
    """Where a stack lies: every column where its entries have it, if no tile gets too much so, else on all tiles.

    There the driver puts whatever is sliced or updated at a place that is not known (`sliceable`).
    """
    beside = spread_columns(table, reshape(entry, (table.columns,)))
    return beside if lowering.is_even(beside, dtype) else sliceable(table, dtype, lowering)


def _like(tensor: Tensor) -> Value:
    return Value(-1, tensor.shape, tensor.dtype)


register(Scan())
register(While())
register(Branch())
register(Calls())
