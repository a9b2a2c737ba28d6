"""Codelets of the IPU's libraries: cycles, state and code of one vertex, a family per file.

A codelet's arguments are plain data. `kind` says how its cycles count on a tile:
`"multi"`: the supervisor starts it on all six workers, cycles are tile cycles;
`"supervisor"`: runs in the supervisor context, which starts workers itself, cycles are tile cycles;
`"worker"`: occupies one of the six worker slots, cycles are worker cycles (six tile cycles each).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from workbench.base.registry import Registry, import_folder
from workbench.engine import cost

Kind = Literal["multi", "supervisor", "worker"]
WORKERS = 6


def _no_flops(**_: Any) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Codelet:
    """One vertex class.

    `cycles(**arguments)` and `state_bytes(**arguments)` (vertex instance with its pointers, in bytes) take the
    same arguments; `code_bytes` is the shared code of the class on each tile that uses it (a function of the
    arguments when templates differ); `flops` counts floating-point operations.
    """

    name: str
    kind: Kind
    cycles: Callable[..., int]
    state_bytes: Callable[..., int]
    code_bytes: Callable[..., int]
    flops: Callable[..., int]
    source: str
    formula: str


codelets: Registry[Codelet] = Registry("vertex")
_loaded = False


def codelet(
    name: str,
    *,
    kind: Kind,
    source: str,
    formula: str,
    state_bytes: Callable[..., int],
    code_bytes: int | Callable[..., int],
    flops: Callable[..., int] = _no_flops,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a vertex class; the decorated function gives its cycles."""
    code = (lambda **_: code_bytes) if isinstance(code_bytes, int) else code_bytes

    def register(cycles: Callable[..., int]) -> Callable[..., int]:
        codelets.add(
            name,
            Codelet(
                name=name,
                kind=kind,
                cycles=cycles,
                state_bytes=state_bytes,
                code_bytes=code,
                flops=flops,
                source=source,
                formula=formula,
            ),
        )
        unit_note = " (worker cycles, six tile cycles each)" if kind == "worker" else ""
        cost.formula(f"vertex:{name}", text=formula + unit_note, source=source, error_kind="vertex")(cycles)
        return cycles

    return register


def load() -> Registry[Codelet]:
    """Import every family of this folder once and return the table."""
    global _loaded
    if not _loaded:
        import_folder(__name__)
        _loaded = True
    return codelets


def find(name: str) -> Codelet:
    """The codelet of this name; an unknown name is an error that lists the known ones."""
    return load().get(name)


@lru_cache(maxsize=200_000)
def _cycles(name: str, inputs: cost.Inputs) -> int:
    return int(find(name).cycles(**dict(inputs)))


def cycles(name: str, **arguments: Any) -> int:
    """Cycles of one vertex.

    Tile cycles for multi-vertices and supervisor vertices, worker cycles for worker vertices, as PopLibs' own
    estimators return them. Names and arguments: see the families in this folder.
    """
    return _cycles(name, cost.inputs_of(arguments))
