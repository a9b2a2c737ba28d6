"""Arrays of no elements: what would compute one computes nothing, and what reads one is worth a constant.

Nothing of them reaches the graph but constants that are spread over an empty shape, so that no operator family needs a
rule for them. A loop of no turns is its carries and empty stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.engine.cost import Plain
from workbench.engine.frontends.expand.fold import FOLDED_DTYPES
from workbench.engine.frontends.trace.body import Body, Context
from workbench.engine.frontends.trace.control_flow import trip_count
from workbench.engine.graph.primitives import Kind, names, primitive

Results: TypeAlias = "Sequence[int] | None"


def without_elements(body: Body, eqn: Any, operands: Sequence[int], context: Context) -> Results:
    """The numbers of an equation's results where emptiness alone decides them; None where it does not."""
    if eqn.effects:
        return None
    name = eqn.primitive.name
    if name == "scan" and eqn.params["length"] == 0:
        first, carried = eqn.params["num_consts"], eqn.params["num_carry"]
        stacks = [_filled(body, eqn, var, 0, context) for var in eqn.outvars[carried:]]
        return [*operands[first : first + carried], *stacks]
    if name == "while" and trip_count(eqn) == 0:
        return operands[eqn.params["cond_nconsts"] + eqn.params["body_nconsts"] :]
    if eqn.outvars and all(0 in var.aval.shape for var in eqn.outvars):
        return [_filled(body, eqn, var, 0, context) for var in eqn.outvars]
    if any(0 in body.sheet.types[number][0] for number in operands):
        rule = _READERS.get(name)
        return rule(body, eqn, operands, context) if rule is not None else None
    return None


def _filled(body: Body, eqn: Any, var: Any, value: Plain, context: Context) -> int:
    """One number everywhere in an array of the type of `var`."""
    dtype = dtype_name(var.aval.dtype)
    known = np.asarray(value, dtype).item() if dtype in FOLDED_DTYPES else value
    return _spread(body, eqn, var, body.scalar(known, dtype), context)


def _spread(body: Body, eqn: Any, var: Any, number: int, context: Context) -> int:
    """A scalar repeated over the shape of `var`."""
    shape = tuple(int(size) for size in var.aval.shape)
    if not shape:
        return number
    draft = body.draft(eqn, [number], context)
    draft.op, draft.results = "broadcast_in_dim", (body.define(var),)
    draft.attrs = (("broadcast_dimensions", ()), ("shape", shape))
    body.sheet.drafts.append(draft)
    return draft.results[0]


def _lowest(dtype: str) -> Plain:
    if dtype == "bool":
        return False
    return int(np.iinfo(dtype).min) if np.issubdtype(_kind(dtype), np.integer) else -np.inf


def _highest(dtype: str) -> Plain:
    if dtype == "bool":
        return True
    return int(np.iinfo(dtype).max) if np.issubdtype(_kind(dtype), np.integer) else np.inf


def _kind(dtype: str) -> np.dtype[Any]:
    return np.dtype("float32" if dtype.startswith(("bfloat", "float8")) else dtype)


def _all_ones(dtype: str) -> Plain:
    return True if dtype == "bool" else _highest(dtype) if dtype.startswith("u") else -1


_REDUCED: Mapping[str, Callable[[str], Plain]] = {
    "reduce_sum": lambda dtype: 0,
    "reduce_prod": lambda dtype: 1,
    "reduce_xor": lambda dtype: 0,
    "reduce_max": _lowest,
    "reduce_min": _highest,
    "reduce_or": lambda dtype: 0,
    "reduce_and": _all_ones,
    "dot_general": lambda dtype: 0,
    "conv_general_dilated": lambda dtype: 0,
}


def _identity(body: Body, eqn: Any, operands: Sequence[int], context: Context) -> Results:
    """Nothing reduced is the operation's neutral element."""
    (var,) = eqn.outvars
    value = _REDUCED[eqn.primitive.name](dtype_name(var.aval.dtype))
    return (_filled(body, eqn, var, value, context),)


def _joined(body: Body, eqn: Any, operands: Sequence[int], context: Context) -> Results:
    """The operands that have elements, joined."""
    kept = [number for number in operands if 0 not in body.sheet.types[number][0]]
    if len(kept) == 1:
        return kept
    draft = body.draft(eqn, kept, context)
    body.sheet.drafts.append(draft)
    return draft.results


def _padding(body: Body, eqn: Any, operands: Sequence[int], context: Context) -> Results:
    """Padding around nothing."""
    return (_spread(body, eqn, eqn.outvars[0], operands[1], context),)


def _untouched(body: Body, eqn: Any, operands: Sequence[int], context: Context) -> Results:
    """What is updated with nothing stays as it is; an index of no parts means all of it."""
    written = operands[1] if primitive(eqn.primitive.name).kind is Kind.UPDATE else operands[2]
    return operands[:1] if 0 in body.sheet.types[written][0] else None


_READERS: Mapping[str, Callable[..., Results]] = {
    **dict.fromkeys(_REDUCED, _identity),
    "concatenate": _joined,
    "pad": _padding,
    **dict.fromkeys(names(Kind.UPDATE, Kind.SCATTER), _untouched),
}
