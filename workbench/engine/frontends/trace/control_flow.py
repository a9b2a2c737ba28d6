"""Loops and branches keep their bodies as functions, called with a count where it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from workbench.base.arrays import ceil_div
from workbench.engine.frontends.trace.body import Body, Context
from workbench.engine.frontends.trace.drafts import Draft
from workbench.engine.frontends.trace.jaxpr_params import is_program
from workbench.engine.graph import Function, Value


def _scan(body: Body, eqn: Any, draft: Draft, context: Context) -> None:
    unchanged = draft.operands[: eqn.params["num_consts"]]
    name, captured = body.subfunction(eqn.params["jaxpr"], "scan_body", context, unchanged=unchanged)
    draft.calls, draft.times = (name,), int(eqn.params["length"])
    draft.operands = (*captured, *draft.operands)
    draft.attrs = (
        ("num_carry", int(eqn.params["num_carry"])),
        ("num_consts", int(eqn.params["num_consts"]) + len(captured)),
        ("reverse", bool(eqn.params["reverse"])),
    )


def _while(body: Body, eqn: Any, draft: Draft, context: Context) -> None:
    split = int(eqn.params["cond_nconsts"])
    unchanged = draft.operands[split : split + eqn.params["body_nconsts"]]
    cond, cond_captured = body.subfunction(eqn.params["cond_jaxpr"], "while_cond", context)
    loop, loop_captured = body.subfunction(eqn.params["body_jaxpr"], "while_body", context, unchanged=unchanged)
    times = trip_count(eqn)
    draft.calls, draft.times = (cond, loop), 1 if times is None else times
    draft.operands = (*cond_captured, *draft.operands[:split], *loop_captured, *draft.operands[split:])
    draft.attrs = (
        ("body_consts", int(eqn.params["body_nconsts"]) + len(loop_captured)),
        ("cond_consts", split + len(cond_captured)),
        *((("unknown_trip_count", True),) if times is None else ()),
    )


def trip_count(eqn: Any) -> int | None:
    """How often a `while` counting from a literal to a literal in literal steps runs; None when nobody can tell."""
    cond, loop = eqn.params["cond_jaxpr"].jaxpr, eqn.params["body_jaxpr"].jaxpr
    if len(cond.eqns) != 1 or cond.eqns[0].primitive.name != "lt" or cond.outvars[0] is not cond.eqns[0].outvars[0]:
        return None
    cond_consts, body_consts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    outer = [None] * (cond_consts + body_consts) + list(eqn.invars)[cond_consts + body_consts :]
    counter, limit = cond.eqns[0].invars
    if isinstance(counter, Literal) or counter not in cond.invars[cond_consts:]:
        return None
    place = cond.invars.index(counter) - cond_consts
    start = outer[cond_consts + body_consts + place]
    if not isinstance(limit, Literal) and limit in cond.invars[:cond_consts]:
        limit = eqn.invars[cond.invars.index(limit)]
    step = _step(loop, body_consts + place, place)
    if not isinstance(start, Literal) or not isinstance(limit, Literal) or step is None or step <= 0:
        return None
    return max(0, ceil_div(int(limit.val) - int(start.val), step))


def _step(loop: Any, param: int, result: int) -> int | None:
    out = loop.outvars[result]
    for eqn in loop.eqns:
        if eqn.outvars[0] is out and eqn.primitive.name == "add":
            left, right = eqn.invars
            if left is loop.invars[param] and isinstance(right, Literal):
                return int(right.val)
    return None


def _cond(body: Body, eqn: Any, draft: Draft, context: Context) -> None:
    owners = [body.owners.get(var, "") for var in eqn.outvars]
    branches = [
        body.subfunction(branch, "branch", context, owners, draft.operands[1:]) for branch in eqn.params["branches"]
    ]
    draft.calls = tuple(name for name, _ in branches)
    draft.attrs = ()
    captured = list(dict.fromkeys(number for _, numbers in branches for number in numbers))
    if captured:
        _share_captures(body, branches, captured)
        draft.operands = (draft.operands[0], *captured, *draft.operands[1:])


def _share_captures(body: Body, branches: Sequence[tuple[str, list[int]]], captured: Sequence[int]) -> None:
    """Give every branch the same captured parameters, in the same order."""
    functions = body.converter.functions
    for name, numbers in branches:
        function = functions[name]
        own = dict(zip(numbers, function.params, strict=False))
        next_id = max((value.id for node in function.nodes for value in node.results), default=-1)
        next_id = max(next_id, *(value.id for value in function.params)) if function.params else next_id
        added = []
        for number in captured:
            if number in own:
                added.append(own[number])
                continue
            next_id += 1
            shape, dtype = body.sheet.types[number]
            added.append(Value(next_id, shape, dtype))
        functions[name] = Function(name, (*added, *function.params[len(numbers) :]), function.results, function.nodes)


def keep_programs(body: Body, eqn: Any, draft: Draft, context: Context) -> None:
    """A primitive that carries programs and is not known here: keep them as functions it calls."""
    names = []
    for value in eqn.params.values():
        for program in value if isinstance(value, (list, tuple)) else (value,):
            if is_program(program) and isinstance(program, (ClosedJaxpr, Jaxpr)):
                names.append(body.subfunction(program, f"{eqn.primitive.name}_body", context)[0])
    draft.calls = tuple(names)


CONTROL: Mapping[str, Callable[[Body, Any, Draft, Context], None]] = {"scan": _scan, "while": _while, "cond": _cond}
