"""What the vertices of a product are connected to: their edges, and the worklists among them, which are constants.

A pointer of a vector of tensors is an edge; a worklist tells each worker its share and is one tensor of constants.
Sources: poplibs@7eac0f26 lib/poplin/codelets/ConvPartial1x1Out.cpp:69-75 and ReduceAdd.cpp:30-75 (fields),
lib/poplin/ConvVertices.cpp (worklists are added as constants); a copy has a source and a destination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.engine.program import OnTileExecute
from workbench.executable import Executable

WORKLIST_BYTES = 3 * 2  # of a worker: three shorts
Arguments = Mapping[str, Any]


def _product(arguments: Arguments) -> int:
    """Blocks of inputs, of outputs and of weights, each a pointer, and the worklist."""
    inputs, outputs = arguments["in_groups"], arguments["out_groups"]
    return int(arguments["conv_groups"] * (inputs + outputs + inputs * outputs) + 1)


def _sum(arguments: Arguments) -> int:
    """The result and each partial; partials that lie together are two: the first and the others."""
    return 3 if arguments.get("single_input") else 1 + int(arguments["partials"])


def _pair(_arguments: Arguments) -> int:
    return 2


_EDGES: dict[str, Callable[[Arguments], int]] = {
    "poplin::ConvPartial1x1Out": _product,
    "poplin::ReduceAdd": _sum,
    "poplar::Memcpy": _pair,
    "poplar::StridedMemcpy": _pair,
}


def _vertices(executable: Executable) -> list[tuple[str, Arguments, int]]:
    """(class, arguments, number) of the vertices of every compute set."""
    steps = [step for step in executable.program.steps if isinstance(step, OnTileExecute)]
    groups = [group for step in steps for group in step.compute_set.groups]
    return [(group.vertex, dict(group.arguments), group.count * len(group.tiles.tiles)) for group in groups]


def edges(executable: Executable) -> int:
    """Tensors that all vertices are connected to; a class whose fields are not listed here is a KeyError."""
    return sum(_EDGES[name](arguments) * number for name, arguments, number in _vertices(executable))


def worklist_bytes(executable: Executable) -> int:
    """Bytes of the constants that divide products among workers."""
    workers = executable.program.target.workers_per_tile
    made = [number for name, _, number in _vertices(executable) if _EDGES[name] is _product]
    return sum(made) * WORKLIST_BYTES * workers
