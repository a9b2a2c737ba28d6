"""Equations of a jaxpr flattened into drafts: calls inlined, identities and constants folded away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.engine.frontends.describe.name_stack import HOST_REGION, is_mark
from workbench.engine.frontends.expand.expansions import Expanded
from workbench.engine.frontends.expand.fold import fold
from workbench.engine.frontends.trace.body import Body, Context, open_program
from workbench.engine.frontends.trace.control_flow import CONTROL, keep_programs
from workbench.engine.frontends.trace.drafts import Draft
from workbench.engine.frontends.trace.empty import without_elements
from workbench.engine.frontends.trace.frames import KNOWN_REGIONS
from workbench.engine.frontends.trace.jaxpr_params import is_program
from workbench.engine.graph.iterations import ASSUMED
from workbench.engine.graph.primitives import Kind, names, primitive

INLINED: Mapping[str, str] = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_lin": "call_jaxpr",
    "custom_vmap_call": "call",
    "composite": "jaxpr",
    "linear_call": "callee",
}
_IDENTITIES = names(Kind.IDENTITY, Kind.BARRIER)
# Because what has its operand's type has dropped, repeated or reduced nothing.
_IDENTITIES_WHEN_TYPES_AGREE = (
    names(reshapes=True) | names(keeps_one=True) | {"convert_element_type", "broadcast_in_dim", "slice"}
)
_REDUCERS = ("scatter", "reduce", "select_and", "cumred", "arg")  # their programs are what their names say
_PLACED = (Kind.LOOKUP, Kind.UPDATE, Kind.SCATTER)  # operands behind the first, or behind what is written, say where
_WITHOUT_RESULT = frozenset({"debug_callback", "debug_print"})


class Flattener(Body):
    """Flattens the equations of one function into its sheet."""

    __slots__ = ()

    def flatten(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[int], context: Context) -> list[int]:
        """Add the equations of a jaxpr called on `args`; the numbers of its results."""
        env: dict[Any, int] = dict(zip(jaxpr.invars, args, strict=True))
        env.update((var, self.constant(value)) for var, value in zip(jaxpr.constvars, consts, strict=True))
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in _WITHOUT_RESULT:
                continue
            operands = [self.read(env, atom) for atom in eqn.invars]
            results = self.equation(eqn, operands, context)
            env.update(zip(eqn.outvars, results, strict=True))
        return [self.read(env, atom) for atom in jaxpr.outvars]

    def equation(self, eqn: Any, operands: list[int], context: Context) -> Sequence[int]:
        """Add one equation; the numbers of its results."""
        name = eqn.primitive.name
        if name in INLINED and INLINED[name] in eqn.params:
            return self.inline(eqn, operands, context)
        if name in _IDENTITIES and not is_mark(name, eqn.params.get("name")):
            return operands
        if name in _IDENTITIES_WHEN_TYPES_AGREE and self.agrees(eqn, operands[0]):
            return operands[:1]
        if name == "select_n" and operands[0] in self.known and np.size(np.unique(self.known[operands[0]])) == 1:
            return (operands[1 + int(np.ravel(self.known[operands[0]])[0])],)
        if name == "cond" and operands[0] in self.known:
            branches = eqn.params["branches"]
            jaxpr, consts = open_program(branches[min(max(0, int(self.known[operands[0]])), len(branches) - 1)])
            return self.flatten(jaxpr, consts, operands[1:], self.inner(eqn, context))
        settled = self.settled(eqn, operands, context)
        if settled is not None:
            return settled
        expansion = self.converter.expander.of(eqn) or self.at_places(eqn, operands)
        if expansion is not None:
            return self.expanded(expansion, eqn, operands, context)
        draft = self.draft(eqn, self.with_known_places(eqn, operands), context)
        control = CONTROL.get(name)
        if control is not None:
            control(self, eqn, draft, self.inner(eqn, context))
        elif not name.startswith(_REDUCERS) and any(is_program(value) for value in eqn.params.values()):
            keep_programs(self, eqn, draft, self.inner(eqn, context))
        draft.effect = any("IO" in type(each).__name__ for each in eqn.effects)
        self.sheet.drafts.append(draft)
        self.keep_scattered(eqn, draft)
        return draft.results

    def expanded(self, expansion: Expanded, eqn: Any, operands: list[int], context: Context) -> Sequence[int]:
        """Add what stands for an equation; its loops say what is assumed of how long they run."""
        before = len(self.sheet.drafts)
        taken = [operands[number] for number in expansion.taken]
        results = self.flatten(expansion.jaxpr, expansion.consts, taken, self.inner(eqn, context))
        if expansion.assumed:
            said = (ASSUMED, f"{expansion.assumed} are what {eqn.primitive.name}")
            for draft in self.sheet.drafts[before:]:
                draft.attrs = (said, *draft.attrs) if draft.times > 1 else draft.attrs
        return results

    def with_known_places(self, eqn: Any, operands: list[int]) -> list[int]:
        """Operands of an update by index: places that are known are a constant, as XLA folds what they are made of."""
        if primitive(eqn.primitive.name).kind is not Kind.SCATTER or operands[1] in self.values.arrays:
            return operands
        places = self.values.of(operands[1])
        return operands if places is None else [operands[0], self.constant(places), *operands[2:]]

    def keep_scattered(self, eqn: Any, draft: Draft) -> None:
        """What an update by index comes to where all of it is known, for whoever looks up by it."""
        if primitive(eqn.primitive.name).kind is not Kind.SCATTER or not draft.results:
            return
        values = self.values.of_all(draft.operands[::-1])  # what is written is known least often
        if values is not None:
            with jax.ensure_compile_time_eval():
                found = eqn.primitive.bind(*map(jnp.asarray, values[::-1]), **eqn.params)
            self.values.arrays[draft.results[0]] = np.asarray(found)

    def at_places(self, eqn: Any, operands: list[int]) -> Expanded | None:
        """What stands for a slice, look-up or update, by what is known of its indices."""
        kind = primitive(eqn.primitive.name).kind
        if kind not in _PLACED:
            return None
        first = 2 if kind is Kind.UPDATE else 1
        known = [self.values.filled(operands[0]), *(None for _ in operands[1:first])]
        known += [self.values.of(number) for number in operands[first : 2 if kind is Kind.SCATTER else None]]
        return self.converter.expander.at_places(eqn, known)

    def settled(self, eqn: Any, operands: list[int], context: Context) -> Sequence[int] | None:
        """The results of an equation that is settled while tracing: constants, and arrays of no elements."""
        known = self.folded(eqn, operands)
        return (known,) if known is not None else without_elements(self, eqn, operands, context)

    def host_call(self, eqn: Any, operands: list[int], context: Context) -> Sequence[int]:
        """Add a call that stays on the host: what is inside is no work of the IPU."""
        draft = self.draft(eqn, operands, context)
        draft.op, draft.attrs = "host_call", ()
        self.sheet.drafts.append(draft)
        return draft.results

    def agrees(self, eqn: Any, operand: int) -> bool:
        """Whether the result has the type of an operand."""
        aval = eqn.outvars[0].aval
        shape, dtype = self.sheet.types[operand]
        return shape == tuple(aval.shape) and dtype == dtype_name(aval.dtype)

    def folded(self, eqn: Any, operands: list[int]) -> int | None:
        """The number of the constant an equation on constants comes to, if it does."""
        known = self.known
        if not operands or len(eqn.outvars) != 1 or eqn.outvars[0].aval.shape != ():
            return None
        if any(number not in known for number in operands):
            return None
        dtype = dtype_name(eqn.outvars[0].aval.dtype)
        value = fold(eqn.primitive.name, [known[number] for number in operands], eqn.params, dtype)
        return None if value is None else self.scalar(value, dtype)

    def inline(self, eqn: Any, operands: list[int], context: Context) -> Sequence[int]:
        """Add the equations of a call in its place; a call that is for the host stays one."""
        if HOST_REGION in str(eqn.params.get("name", "")):
            return self.host_call(eqn, operands, context)
        program = eqn.params[INLINED[eqn.primitive.name]]
        jaxpr, consts = open_program(program)
        name = eqn.params.get("name") or jaxpr.debug_info.func_name
        return self.flatten(jaxpr, consts, operands, self.inner(eqn, context, KNOWN_REGIONS.get(name, "")))
