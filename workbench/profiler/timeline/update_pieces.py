"""The pieces of an update with collectives in it: what replicas sum together, and the work between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from workbench.profiler.timeline.timeline import Node, in_turn


def busy(node: Node) -> set[str]:
    """The causes that the IPUs which work in a node spend cycles on, but waiting."""
    return {
        cause for (ipu, cause), cycles in node.totals.items() if cycles and ipu in node.ipus and "idle" not in cause
    }


def units(node: Node) -> Iterator[Node]:
    """What runs in a node in turn, in parts that are a collective or hold none, as far as its sequences go."""
    if node.kind in ("sequence", "call") and _is_mixed(node):
        for child in node.children:
            yield from units(child)
    elif node.cycles:
        yield node


def _is_mixed(node: Node) -> bool:
    causes = busy(node)
    return "collective" in causes and len(causes) > 1


def joined(node: Node, run: tuple[Node, ...], *, whole: bool) -> Node:
    """Neighbours as one node: as a call of what `node` calls when they are its own work."""
    spent, cycles = in_turn([unit.spent for unit in run]), sum(unit.cycles for unit in run)
    body = Node(
        kind="sequence", name=run[0].name, cycles=cycles, totals=spent.own, rest=spent.rest, ipus=spent.ipus,
        parts=run, offsets=(*accumulate((unit.cycles for unit in run[:-1]), initial=0),),
    )  # fmt: skip
    found = replace(node, cycles=cycles, totals=spent.own, rest=spent.rest, parts=(body,), sums={})
    return found if whole else body
