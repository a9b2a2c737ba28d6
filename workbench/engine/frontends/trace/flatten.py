"""Equations of a jaxpr flattened into drafts: calls inlined, identities and constants folded away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from workbench.engine.frontends.describe.name_stack import HOST_REGION, LayerNames, Place, Stack, place_of
from workbench.engine.frontends.expand.expansions import Expander
from workbench.engine.frontends.expand.fold import FOLDED_DTYPES, LARGEST_FOLDED_ARRAY, fold
from workbench.engine.frontends.trace.control_flow import CONTROL, keep_programs
from workbench.engine.frontends.trace.drafts import Draft, Sheet, freeze_function, name_unnamed, name_updates, prune
from workbench.engine.frontends.trace.empty import without_elements
from workbench.engine.frontends.trace.frames import KNOWN_REGIONS, Frames
from workbench.engine.frontends.trace.jaxpr_params import dtype_name, is_program, plain_attributes
from workbench.engine.graph import ITEMSIZE_BYTES, Function
from workbench.engine.graph.origin import Direction
from workbench.errors import InputError

INLINED: Mapping[str, str] = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
    "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_lin": "call_jaxpr", "custom_vmap_call": "call",
    "composite": "jaxpr",
    "linear_call": "callee",
}  # fmt: skip
_IDENTITIES = frozenset({
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "sharding_constraint", "reshard", "name", "pvary",
    "layout_constraint", "mesh_cast", "random_clone", "device_put",
})  # fmt: skip
_IDENTITIES_WHEN_TYPES_AGREE = frozenset({
    "convert_element_type", "reshape", "broadcast_in_dim", "squeeze", "expand_dims", "slice", "reduce_sum",
    "reduce_max", "reduce_min", "reduce_prod",
})  # fmt: skip
_REDUCERS = ("scatter", "reduce", "select_and", "cumred", "arg")  # their programs are what their names say
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated"})
_WITHOUT_RESULT = frozenset({"debug_callback", "debug_print"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What surrounds an equation: the name stack, the region and the user's line of the enclosing calls."""

    stack: Stack = ()
    region: str = ""
    source: str = ""


@dataclass(slots=True)
class Converter:
    """The functions made so far, and the caches that keep a conversion of 6,000 equations under half a second."""

    names: LayerNames
    read_stack: Callable[[Any], Stack]
    read_traceback: Callable[[Any], Any]
    functions: dict[str, Function] = field(default_factory=dict)
    frames: Frames = field(default_factory=Frames)
    expander: Expander = field(default_factory=Expander)
    places: dict[tuple[Stack, Stack], Place] = field(default_factory=dict)

    def place(self, context: Context, own: Stack) -> Place:
        """What the stacks around and of an equation say."""
        key = (context.stack, own)
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = place_of(context.stack, own, self.names)
        return known

    def fresh_name(self, wanted: str) -> str:
        """A name no function has yet."""
        name, count = wanted, 1
        while name in self.functions:
            name, count = f"{wanted}_{count}", count + 1
        return name


@dataclass(slots=True)
class Body:
    """Flattens the equations of one function into a sheet."""

    converter: Converter
    sheet: Sheet = field(default_factory=Sheet)
    constants: dict[int, tuple[int, Any]] = field(default_factory=dict)  # id(array) -> (number, array)
    known: dict[int, Any] = field(default_factory=dict)  # number -> value, for folding
    owners: dict[Any, str] = field(default_factory=dict)  # outermost result variable -> layer it belongs to

    def own(self, outvars: Sequence[Any], layers: Sequence[str]) -> None:
        """Say which layers results belong to."""
        held = zip(outvars, layers, strict=True)
        self.owners.update((var, layer) for var, layer in held if not isinstance(var, Literal))

    def define(self, var: Any) -> int:
        """A new number for a jaxpr variable."""
        aval = var.aval
        dtype = dtype_name(aval.dtype)
        if dtype not in ITEMSIZE_BYTES:
            raise InputError(
                f"the model computes with {dtype} values, which the IPU does not have",
                expected="float32, float16, bfloat16, integers or booleans",
                todo="express the operation in real numbers, or keep it on the host",
            )
        return self.sheet.number(tuple(int(size) for size in aval.shape), dtype)

    def constant(self, array: Any) -> int:
        """A closed-over value: a scalar is a literal, an array becomes a parameter of the function."""
        if np.shape(array) == () and hasattr(array, "dtype") and dtype_name(array.dtype) != "key":
            return self.scalar(np.asarray(array).item(), dtype_name(array.dtype))
        if id(array) not in self.constants:
            shape = tuple(int(size) for size in np.shape(array))
            number = self.sheet.number(shape, dtype_name(array.dtype))
            self.constants[id(array)] = (number, array)
            if np.size(array) <= LARGEST_FOLDED_ARRAY and dtype_name(array.dtype) in FOLDED_DTYPES:
                self.known[number] = np.asarray(array)
        return self.constants[id(array)][0]

    def read(self, env: dict[Any, int], atom: Any) -> int:
        """The number of a variable or literal."""
        if not isinstance(atom, Literal):
            return env[atom]
        if np.shape(atom.val) != ():
            return self.constant(atom.val)
        return self.scalar(np.asarray(atom.val).item(), dtype_name(atom.aval.dtype))

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
        if name in _IDENTITIES:
            return operands
        if name in _IDENTITIES_WHEN_TYPES_AGREE and self.agrees(eqn, operands[0]):
            return operands[:1]
        if name == "select_n" and operands[0] in self.known:
            return (operands[1 + int(self.known[operands[0]])],)
        if name == "cond" and operands[0] in self.known:
            branches = eqn.params["branches"]
            jaxpr, consts = open_program(branches[min(max(0, int(self.known[operands[0]])), len(branches) - 1)])
            return self.flatten(jaxpr, consts, operands[1:], self.inner(eqn, context))
        settled = self.settled(eqn, operands, context)
        if settled is not None:
            return settled
        expansion = self.converter.expander.of(eqn)
        if expansion is not None:
            taken = [operands[number] for number in expansion.taken]
            return self.flatten(expansion.jaxpr, expansion.consts, taken, self.inner(eqn, context))
        draft = self.draft(eqn, operands, context)
        control = CONTROL.get(name)
        if control is not None:
            control(self, eqn, draft, self.inner(eqn, context))
        elif not name.startswith(_REDUCERS) and any(is_program(value) for value in eqn.params.values()):
            keep_programs(self, eqn, draft, self.inner(eqn, context))
        draft.effect = any("IO" in type(each).__name__ for each in eqn.effects)
        self.sheet.drafts.append(draft)
        return draft.results

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

    def scalar(self, value: Any, dtype: str) -> int:
        """The number of a scalar constant."""
        number = self.sheet.literal(value, (), dtype)
        if dtype in FOLDED_DTYPES:
            self.known[number] = np.asarray(value, dtype)
        return number

    def inner(self, eqn: Any, context: Context, region: str = "") -> Context:
        """The context of the equations inside an equation."""
        found, source = self.converter.frames.read(self.converter.read_traceback(eqn))
        return Context(
            stack=context.stack + self.converter.read_stack(eqn),
            region=context.region or found or region,
            source=context.source or source,
        )

    def inline(self, eqn: Any, operands: list[int], context: Context) -> Sequence[int]:
        """Add the equations of a call in its place; a call that is for the host stays one."""
        if HOST_REGION in str(eqn.params.get("name", "")):
            return self.host_call(eqn, operands, context)
        program = eqn.params[INLINED[eqn.primitive.name]]
        jaxpr, consts = open_program(program)
        name = eqn.params.get("name") or jaxpr.debug_info.func_name
        return self.flatten(jaxpr, consts, operands, self.inner(eqn, context, KNOWN_REGIONS.get(name, "")))

    def draft(self, eqn: Any, operands: list[int], context: Context) -> Draft:
        """One equation with its attributes and origin."""
        converter = self.converter
        place = converter.place(context, converter.read_stack(eqn))
        if context.region and context.source:
            region, source = context.region, context.source
        else:
            found, line = converter.frames.read(converter.read_traceback(eqn))
            region, source = context.region or found, context.source or line
        attributes = plain_attributes(eqn.primitive.name, eqn.params)
        if place.partials and eqn.primitive.name in _PRODUCTS:
            attributes = tuple(sorted((*attributes, ("partials_type", place.partials))))
        if place.feed:
            attributes = tuple(sorted((*attributes, *place.feed)))
        return Draft(
            eqn.primitive.name,
            tuple(operands),
            tuple(self.define(var) for var in eqn.outvars),
            attributes,
            place.layer, place.call, place.direction, region, source, shard=place.shard,
        )  # fmt: skip

    def used_constants(self, results: Sequence[int]) -> list[tuple[int, Any]]:
        """The arrays closed over that something needs, with their numbers."""
        prune(self.sheet, results)
        needed = {number for draft in self.sheet.drafts for number in draft.operands} | set(results)
        return [(number, array) for number, array in self.constants.values() if number in needed]

    def subfunction(
        self, program: Any, wanted: str, context: Context, owners: Sequence[str] = ()
    ) -> tuple[str, list[int]]:
        """Convert a body into a function of its own; the outer numbers of the arrays it closes over.

        `owners` is the layer each result belongs to, as far as known.
        """
        jaxpr, consts = open_program(program)
        body = Body(self.converter)
        if owners:
            body.own(jaxpr.outvars, owners)
        params = [body.define(var) for var in jaxpr.invars]
        results = body.flatten(jaxpr, consts, params, context)
        constants = body.used_constants(results)
        captured = [self.constant(array) for _, array in constants]
        name = self.converter.fresh_name(wanted)
        owned = {number: layer for number, layer in zip(results, owners, strict=False) if layer}
        function = finish(body, name, [*(number for number, _ in constants), *params], results, owned)
        self.converter.functions[name] = function
        return name, captured


def open_program(program: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr and its constants, closed or not."""
    if isinstance(program, ClosedJaxpr):
        return program.jaxpr, program.consts
    return program, ()


def finish(
    body: Body,
    name: str,
    params: Sequence[int],
    results: Sequence[int],
    owners: Mapping[int, str],
    direction: Direction = "forward",
) -> Function:
    """Attribute and freeze a body; `owners` maps result numbers to the layers they belong to."""
    name_updates(body.sheet, owners)
    name_unnamed(body.sheet, owners, direction)
    return freeze_function(name, body.sheet, params, results, body.converter.names)
