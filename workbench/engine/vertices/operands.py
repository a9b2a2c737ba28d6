"""What a codelet's operands are like: how many elements those that it reads and those that it writes may have.

A codelet names a rule as its `operands`; without one it is `counted`. A rule takes the codelet's arguments and gives
`Sizes`, or None where the arguments do not tell. Only vertices by hand are held to them: lowering makes both from one
mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

COUNTS = ("n", "num_elems", "elements", "size")
"""Arguments that are the elements of a vertex without rows."""

IN_TYPES = ("type", "in_type", "from_type", "a_type", "b_type", "scale_type", "index_type", "key_type", "value_type")
OUT_TYPES = ("to_type", "out_type", "output_type")
"""Arguments that are element types of what is read, and of what is written where that has one of its own."""

BOOLEAN = frozenset(
    (
        *("EQUAL", "NOT_EQUAL", "GREATER_THAN", "GREATER_THAN_EQUAL", "LESS_THAN", "LESS_THAN_EQUAL"),
        *("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "IS_FINITE", "IS_INF", "IS_NAN"),
    )
)
"""Operations whose result is a truth value, whatever their operands are."""

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Elements (bytes where `in_bytes`) that a tensor which is read, or written, may have; None: any."""

    read: frozenset[int] | None
    written: frozenset[int] | None
    in_bytes: bool = False


Rule: TypeAlias = Callable[[Arguments], Sizes | None]


def _both(*sizes: int) -> Sizes:
    return Sizes(read=frozenset(sizes), written=frozenset(sizes))


def _count(arguments: Arguments) -> int | None:
    rows = arguments.get("rows")
    if isinstance(rows, Sequence):
        return sum(rows)
    return next((arguments[key] for key in COUNTS if arguments.get(key) is not None), None)


def alike(arguments: Arguments) -> Sizes | None:
    """Every operand has as many elements."""
    count = _count(arguments)
    return None if count is None else _both(count)


def counted(arguments: Arguments) -> Sizes | None:
    """Every operand has as many elements, or one, or one a row: a scale, a bound, a scalar."""
    count, rows = _count(arguments), arguments.get("rows")
    return None if count is None else _both(count, 1, *([len(rows)] if isinstance(rows, Sequence) else []))


def copied(arguments: Arguments) -> Sizes | None:
    """Every operand has as many bytes."""
    moved = frozenset([int(arguments["bytes"])])
    return Sizes(read=moved, written=moved, in_bytes=True)


def untold(_: Arguments) -> Sizes | None:
    """The arguments count work, and do not tell how large the tensors are that it is done on."""
    return None


def sized(read: Callable[..., Any], written: Callable[..., Any] | None = None) -> Rule:
    """Sizes worked out from the arguments: of what is read, and of what is written where that is of others.

    Either may be `untold`.
    """

    def rule(arguments: Arguments) -> Sizes:
        found = _told(read, arguments)
        return Sizes(read=found, written=found if written is None else _told(written, arguments))

    return rule


def _told(sizes: Callable[..., Any], arguments: Arguments) -> frozenset[int] | None:
    return None if sizes is untold else frozenset(sizes(**arguments))
