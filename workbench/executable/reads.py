"""Which options a compile read, and where: what was noted on the way, so that nothing is kept by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.engine.compile import Compiled
from workbench.engine.options import OPTIONS, NotedOptions, Options

if TYPE_CHECKING:
    from workbench.executable.executable import Executable

# Where reads are noted: an option that is read elsewhere too acts before there is a graph to compile.
NOTED = ("engine/passes", "engine/lower", "engine/planner", "engine/ops", "engine/compile")


def options_read(executable: Executable) -> Mapping[str, str] | None:
    """By option, where its value was asked for: `"lowering and planning"`, of what only a pass asked for
    `"graph passes"`, or `""` where nowhere.

    Options that act outside of these are left out; None where the result came from a cache, which keeps no notes, or
    the program was made by hand.
    """
    result = executable._result
    if not isinstance(result, Compiled) or result.prepared is None:
        return None
    passed = read_of(dict(result.prepared.read), result.options)
    lowered = read_of(result.read, result.options)
    where = {name: "lowering and planning" if name in lowered else "graph passes" for name in passed | lowered}
    every = [each.name for each in OPTIONS.values() if _is_noted(each.read_by)]
    return {**{name: where.get(name, "") for name in every}, **where}


def read_of(noted: Iterable[tuple[str, Any]], options: Options) -> set[str]:
    """The names behind notes: those that were asked for, and those that questions ask for."""
    found: set[str] = set()
    for kind, asked in noted:
        if kind == "ask":
            inner = NotedOptions.of(options)
            asked(inner)
            found |= read_of(inner.noted, options)
        else:
            found.add(asked)
    return found


def _is_noted(readers: tuple[str, ...]) -> bool:
    return bool(readers) and all(each.startswith(NOTED) for each in readers)
