"""Codelets of the IPU's libraries: cycles, state and code of one vertex, a family per file.

A codelet's arguments are plain data; what its loops depend on of the machine (`Machine`: workers, data path) it takes
as further arguments of those names, by which the texts of formulas go.
`kind` says how its cycles count on a tile:
`"multi"`: the supervisor starts it on all workers, cycles are tile cycles;
`"supervisor"`: runs in the supervisor context, which starts workers itself, cycles are tile cycles;
`"worker"`: occupies one of the worker slots, cycles are worker cycles (as many tile cycles each as there are slots).

Imports costs and targets. Tests: tests/engine/vertices, with a sample of each codelet in samples/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import CO_VARKEYWORDS, Parameter, signature, unwrap
from typing import Any, Literal

from workbench.base.registry import Registry, import_folder
from workbench.engine import cost
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine
from workbench.engine.vertices.operands import Rule, counted

Kind = Literal["multi", "supervisor", "worker"]


def _no_flops(**_: Any) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Codelet:
    """One vertex class.

    `cycles(**arguments)` and `state_bytes(**arguments)` (vertex instance with its pointers, in bytes) take the
    same arguments, `inputs(machine, arguments)`; `code_bytes` is the shared code of the class on each tile that uses
    it (a function of the arguments when templates differ); `flops` counts floating-point operations. `operands` tells
    how large its tensors may be, `also_types` what else they are of than the types its arguments name.
    """

    name: str
    kind: Kind
    cycles: Callable[..., int]
    state_bytes: Callable[..., int]
    code_bytes: Callable[..., int]
    flops: Callable[..., int]
    source: str
    formula: str
    of_machine: tuple[str, ...]
    operands: Rule = counted
    also_types: tuple[str, ...] = ()

    def inputs(self, machine: Machine, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """All that its cycles are worked out from: the arguments, and of the machine what the codelet names."""
        return {**{name: getattr(machine, name) for name in self.of_machine}, **arguments}


def _of_machine(function: Callable[..., int]) -> tuple[str, ...]:
    named, _ = _inputs_of(function)
    return tuple(name for name in Machine._fields if name in named)


def _inputs_of(function: Callable[..., int]) -> tuple[Sequence[str], bool]:
    """Names of the function's arguments, and whether it takes others: read off its code, as there are hundreds."""
    code = getattr(unwrap(function), "__code__", None)
    if code is not None:
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], bool(code.co_flags & CO_VARKEYWORDS)
    named = signature(function).parameters
    return list(named), any(each.kind is Parameter.VAR_KEYWORD for each in named.values())


def _taking(function: Callable[..., int], given: tuple[str, ...]) -> Callable[..., int]:
    """The function, which may leave out what of the machine its codelet's cycles are `given`."""
    named, takes_others = _inputs_of(function)
    left_out = [name for name in given if name not in named]
    if not left_out or takes_others:
        return function

    @wraps(function)
    def taken(**inputs: Any) -> int:
        return function(**{name: value for name, value in inputs.items() if name not in left_out})

    return taken


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
    operands: Rule = counted,
    also_types: tuple[str, ...] = (),
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a vertex class; the decorated function gives its cycles."""
    code = (lambda **_: code_bytes) if isinstance(code_bytes, int) else code_bytes

    def register(cycles: Callable[..., int]) -> Callable[..., int]:
        asked = {name for function in (cycles, state_bytes, code, flops) for name in _of_machine(function)}
        given = tuple(name for name in Machine._fields if name in asked)
        codelets.add(
            name,
            Codelet(
                name=name,
                kind=kind,
                cycles=_taking(cycles, given),
                state_bytes=_taking(state_bytes, given),
                code_bytes=_taking(code, given),
                flops=_taking(flops, given),
                source=source,
                formula=formula,
                of_machine=given,
                operands=operands,
                also_types=also_types,
            ),
        )
        unit_note = " (worker cycles, each as many tile cycles as a tile has workers)" if kind == "worker" else ""
        family = cycles.__module__.removeprefix(f"{__name__}.").partition(".")[0]
        cost.formula(f"vertex:{name}", text=formula + unit_note, source=source, error_kind=f"vertex {family}")(
            _taking(cycles, given)
        )
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


@remembered(200_000)
def _cycles(machine: Machine, name: str, arguments: cost.Inputs) -> int:
    codelet = find(name)
    return int(codelet.cycles(**codelet.inputs(machine, dict(arguments))))


def cycles(machine: Machine, name: str, **arguments: Any) -> int:
    """Cycles of one vertex on a machine.

    Tile cycles for multi-vertices and supervisor vertices, worker cycles for worker vertices, as PopLibs' own
    estimators return them. Names and arguments: see the families in this folder.
    """
    return _cycles(machine, name, cost.inputs_of(arguments))
