"""Slices and rows of what was joined end to end are those of the parts, so that parts nobody reads need not be made.

Poplar's concatenation is a view of its parts and a slice of it one of those that it meets: an element that no view
meets is never live, and what makes only such elements is dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from workbench.engine.graph import Node, Value
from workbench.engine.graph.rewriting import Writer

# Because of these two alone each entry of an axis is another of the same axis.
OPS = frozenset({"slice", "known_rows"})
MOST_STRETCHES = 64  # more rows apart are left as they are: each would become a slice


def seen_by_parts(node: Node, writer: Writer) -> list[Value] | None:
    """A slice, or rows, of a join as those of its parts, where that is fewer of them."""
    rule = {"slice": _slice, "known_rows": _rows}.get(node.op)
    found = rule(node, writer) if rule else None
    return None if found is None else [found]


def _slice(node: Node, writer: Writer) -> Value | None:
    """A slice of fewer parts than were joined, along the first axis of which that is so, then along the others."""
    if any(step != 1 for step in node.attr("strides") or ()):
        return None
    value, result = node.operands[0], node.results[0]
    begin, end = (list(node.attr(name)) for name in ("start_indices", "limit_indices"))
    for axis, (low, high) in enumerate(zip(begin, end, strict=True)):
        if _meets_fewer(value, axis, low, high, writer):
            part = _part(value, axis, low, high, writer)
            if part.shape == result.shape:
                return part
            begin[axis], end[axis] = 0, high - low
            steps = (1,) * len(begin)
            return writer.write("slice", [part], result.shape, start_indices=begin, limit_indices=end, strides=steps)
    return None


def _rows(node: Node, writer: Writer) -> Value | None:
    """Stretches of rows of a join one by one, if each is of fewer parts than were joined."""
    stretches = [(first, first + count) for first, count in zip(node.attr("firsts"), node.attr("counts"), strict=True)]
    table = node.operands[0]
    if node.attr("repeats") or len(stretches) > MOST_STRETCHES:
        return None
    if not all(_meets_fewer(table, 0, low, high, writer) for low, high in stretches):
        return None
    return writer.join([_part(table, 0, low, high, writer) for low, high in stretches], 0)


def _meets_fewer(value: Value, axis: int, low: int, high: int, writer: Writer) -> bool:
    """Whether entries [low, high) of an axis are of some of several parts that were joined along it."""
    made_by = writer.made_by.get(value)
    if made_by is None or low >= high or (low, high) == (0, value.shape[axis]):
        return False
    if made_by.op == "reshape":
        cuts = _before(made_by, axis, low, high)
        return any(_meets_fewer(made_by.operands[0], *cut, writer) for cut in cuts)
    joined = made_by.op == "concatenate" and made_by.attr("dimension") == axis
    return joined and len(_met(made_by, axis, low, high)) < len(made_by.operands)


def _met(join: Node, axis: int, low: int, high: int) -> list[tuple[Value, int, int]]:
    """The parts of a join that entries [low, high) are of, each with the entries of its own."""
    ends = accumulate(part.shape[axis] for part in join.operands)
    begins = [(part, end - part.shape[axis]) for part, end in zip(join.operands, ends, strict=True)]
    clipped = [(part, max(low - begin, 0), min(high - begin, part.shape[axis])) for part, begin in begins]
    return [(part, first, last) for part, first, last in clipped if first < last]


def _part(value: Value, axis: int, low: int, high: int, writer: Writer) -> Value:
    """Entries [low, high) of an axis, by the parts that they are of."""
    if (low, high) == (0, value.shape[axis]):
        return value
    if not _meets_fewer(value, axis, low, high, writer):
        return writer.slice(value, axis, low, high)
    made_by = writer.made_by[value]
    if made_by.op == "concatenate":
        met = _met(made_by, axis, low, high)
        return writer.join([_part(part, axis, first, last, writer) for part, first, last in met], axis)
    part = made_by.operands[0]
    for cut in _before(made_by, axis, low, high):
        part = _part(part, *cut, writer)
    return writer.reshape(part, [high - low if at == axis else size for at, size in enumerate(value.shape)])


def _before(reshape: Node, axis: int, low: int, high: int) -> list[tuple[int, int, int]]:
    """What entries [low, high) of an axis were before a reshape: axes with the entries of each.

    None are found but where axes of size 1 came or went, or two became one and all entries are of one of the first.
    """
    before, after = reshape.operands[0].shape, reshape.results[0].shape
    wide, seen = _wide(before), _wide(after)
    old, new = [before[at] for at in wide], [after[at] for at in seen]
    if axis not in seen:
        return []
    at = seen.index(axis)
    if old == new:
        return [(wide[at], low, high)]
    merged = [*old[:at], prod(old[at : at + 2]), *old[at + 2 :]]
    if len(old) != len(new) + 1 or merged != new:
        return []
    size = old[at + 1]
    group, first = divmod(low, size)
    return (
        [(wide[at + 1], first, first + high - low), (wide[at], group, group + 1)] if first + high - low <= size else []
    )


def _wide(shape: Sequence[int]) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size != 1]
