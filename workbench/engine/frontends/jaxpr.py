"""A jaxpr becomes a `Graph`: calls inlined, loops and branches kept as functions, every equation with its origin.

The only file that touches what is not public in JAX and Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax._src.source_info_util import Scope
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from keras.src.backend.common import global_state

from workbench.engine.frontends.drafts import Draft, Sheet, freeze_function, name_unnamed, name_updates, prune
from workbench.engine.frontends.fold import FOLDED_DTYPES, LARGEST_FOLDED_ARRAY, fold
from workbench.engine.frontends.frames import KNOWN_REGIONS, Frames
from workbench.engine.frontends.jaxpr_params import dtype_name, is_program, plain_attributes
from workbench.engine.frontends.name_stack import LayerNames, Place, Stack, once, place_of
from workbench.engine.graph import ITEMSIZE_BYTES, Function, Graph, Input, Output, Value, verify_graph
from workbench.errors import InputError

_INLINED: Mapping[str, str] = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
    "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_lin": "call_jaxpr",
}  # fmt: skip
_IDENTITIES = frozenset({
    "copy", "copy_p", "stop_gradient", "optimization_barrier", "sharding_constraint", "reshard", "name", "pvary",
    "layout_constraint", "mesh_cast", "reduce_precision_noop",
})  # fmt: skip
_IDENTITIES_WHEN_TYPES_AGREE = frozenset({
    "convert_element_type", "reshape", "broadcast_in_dim", "squeeze", "expand_dims", "slice", "reduce_sum",
    "reduce_max", "reduce_min", "reduce_prod", "reduce_precision",
})  # fmt: skip
_REDUCERS = ("scatter", "reduce", "select_and", "cumred", "arg")  # their programs are what their names say
_WITHOUT_RESULT = frozenset({"debug_callback", "debug_print"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What surrounds an equation: the name stack, the region and the user's line of the enclosing calls."""

    stack: Stack = ()
    region: str = ""
    source: str = ""


@dataclass(slots=True)
class _Converter:
    """The functions made so far, and the caches that keep a conversion of 6,000 equations under half a second."""

    names: LayerNames
    functions: dict[str, Function] = field(default_factory=dict)
    frames: Frames = field(default_factory=Frames)
    stacks: dict[Any, Stack] = field(default_factory=dict)
    places: dict[tuple[Stack, Stack], Place] = field(default_factory=dict)

    def stack(self, eqn: Any) -> Stack:
        raw = eqn.source_info.name_stack.stack
        known = self.stacks.get(raw)
        if known is None:
            known = self.stacks[raw] = once(
                tuple(("scope" if isinstance(part, Scope) else "transform", part.name) for part in raw)
            )
        return known

    def place(self, context: _Context, own: Stack) -> Place:
        key = (context.stack, own)
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = place_of(context.stack, own, self.names)
        return known

    def fresh_name(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.functions:
            name, count = f"{wanted}_{count}", count + 1
        return name


@dataclass(slots=True)
class _Body:
    """Flattens the equations of one function into a sheet."""

    converter: _Converter
    sheet: Sheet = field(default_factory=Sheet)
    constants: dict[int, tuple[int, Any]] = field(default_factory=dict)  # id(array) -> (number, array)
    known: dict[int, Any] = field(default_factory=dict)  # number -> value, for folding

    def define(self, var: Any) -> int:
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
        if not isinstance(atom, Literal):
            return env[atom]
        if np.shape(atom.val) != ():
            return self.constant(atom.val)
        return self.scalar(np.asarray(atom.val).item(), dtype_name(atom.aval.dtype))

    def flatten(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[int], context: _Context) -> list[int]:
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

    def equation(self, eqn: Any, operands: list[int], context: _Context) -> Sequence[int]:
        name = eqn.primitive.name
        if name in _INLINED and _INLINED[name] in eqn.params:
            return self.inline(eqn, operands, context)
        if name in _IDENTITIES:
            return operands
        if name in _IDENTITIES_WHEN_TYPES_AGREE and self.agrees(eqn, operands[0]):
            return operands[:1]
        if name == "select_n" and operands[0] in self.known:
            return (operands[1 + int(self.known[operands[0]])],)
        known = self.folded(eqn, operands)
        if known is not None:
            return (known,)
        draft = self.draft(eqn, operands, context)
        control = _CONTROL.get(name)
        if control is not None:
            control(self, eqn, draft, self.inner(eqn, context))
        elif not name.startswith(_REDUCERS) and any(is_program(value) for value in eqn.params.values()):
            _generic(self, eqn, draft, self.inner(eqn, context))
        self.sheet.drafts.append(draft)
        return draft.results

    def agrees(self, eqn: Any, operand: int) -> bool:
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
        number = self.sheet.literal(value, (), dtype)
        if dtype in FOLDED_DTYPES:
            self.known[number] = np.asarray(value, dtype)
        return number

    def inner(self, eqn: Any, context: _Context, region: str = "") -> _Context:
        """The context of the equations inside an equation."""
        found, source = self.converter.frames.read(eqn.source_info.traceback)
        return _Context(
            stack=context.stack + self.converter.stack(eqn),
            region=context.region or found or region,
            source=context.source or source,
        )

    def inline(self, eqn: Any, operands: list[int], context: _Context) -> list[int]:
        program = eqn.params[_INLINED[eqn.primitive.name]]
        jaxpr, consts = _open(program)
        name = eqn.params.get("name") or jaxpr.debug_info.func_name
        return self.flatten(jaxpr, consts, operands, self.inner(eqn, context, KNOWN_REGIONS.get(name, "")))

    def draft(self, eqn: Any, operands: list[int], context: _Context) -> Draft:
        converter = self.converter
        place = converter.place(context, converter.stack(eqn))
        if context.region and context.source:
            region, source = context.region, context.source
        else:
            found, line = converter.frames.read(eqn.source_info.traceback)
            region, source = context.region or found, context.source or line
        return Draft(
            eqn.primitive.name,
            tuple(operands),
            tuple(self.define(var) for var in eqn.outvars),
            plain_attributes(eqn.primitive.name, eqn.params),
            place.layer, place.call, place.direction, region, source,
        )  # fmt: skip

    def used_constants(self, results: Sequence[int]) -> list[tuple[int, Any]]:
        """The arrays closed over that something needs, with their numbers."""
        prune(self.sheet, results)
        needed = {number for draft in self.sheet.drafts for number in draft.operands} | set(results)
        return [(number, array) for number, array in self.constants.values() if number in needed]

    def subfunction(self, program: Any, wanted: str, context: _Context) -> tuple[str, list[int]]:
        """Convert a body into a function of its own; the outer numbers of the arrays it closes over."""
        jaxpr, consts = _open(program)
        body = _Body(self.converter)
        params = [body.define(var) for var in jaxpr.invars]
        results = body.flatten(jaxpr, consts, params, context)
        constants = body.used_constants(results)
        captured = [self.constant(array) for _, array in constants]
        name = self.converter.fresh_name(wanted)
        function = _finish(body, name, [*(number for number, _ in constants), *params], results, {})
        self.converter.functions[name] = function
        return name, captured


def _open(program: Any) -> tuple[Any, Sequence[Any]]:
    if isinstance(program, ClosedJaxpr):
        return program.jaxpr, program.consts
    return program, ()


def _scan(body: _Body, eqn: Any, draft: Draft, context: _Context) -> None:
    name, captured = body.subfunction(eqn.params["jaxpr"], "scan_body", context)
    draft.calls, draft.times = (name,), int(eqn.params["length"])
    draft.operands = (*captured, *draft.operands)
    draft.attrs = (
        ("num_carry", int(eqn.params["num_carry"])),
        ("num_consts", int(eqn.params["num_consts"]) + len(captured)),
        ("reverse", bool(eqn.params["reverse"])),
    )


def _while(body: _Body, eqn: Any, draft: Draft, context: _Context) -> None:
    cond, cond_captured = body.subfunction(eqn.params["cond_jaxpr"], "while_cond", context)
    loop, loop_captured = body.subfunction(eqn.params["body_jaxpr"], "while_body", context)
    split = int(eqn.params["cond_nconsts"])
    times = _trip_count(eqn)
    draft.calls, draft.times = (cond, loop), 1 if times is None else times
    draft.operands = (*cond_captured, *draft.operands[:split], *loop_captured, *draft.operands[split:])
    draft.attrs = (
        ("body_consts", int(eqn.params["body_nconsts"]) + len(loop_captured)),
        ("cond_consts", split + len(cond_captured)),
        *((("unknown_trip_count", True),) if times is None else ()),
    )


def _trip_count(eqn: Any) -> int | None:
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
    return max(0, -(-(int(limit.val) - int(start.val)) // step))


def _step(loop: Any, param: int, result: int) -> int | None:
    out = loop.outvars[result]
    for eqn in loop.eqns:
        if eqn.outvars[0] is out and eqn.primitive.name == "add":
            left, right = eqn.invars
            if left is loop.invars[param] and isinstance(right, Literal):
                return int(right.val)
    return None


def _cond(body: _Body, eqn: Any, draft: Draft, context: _Context) -> None:
    branches = [body.subfunction(branch, "branch", context) for branch in eqn.params["branches"]]
    draft.calls = tuple(name for name, _ in branches)
    draft.attrs = ()
    captured = list(dict.fromkeys(number for _, numbers in branches for number in numbers))
    if captured:
        _share_captures(body, branches, captured)
        draft.operands = (draft.operands[0], *captured, *draft.operands[1:])


def _share_captures(body: _Body, branches: Sequence[tuple[str, list[int]]], captured: Sequence[int]) -> None:
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
        functions[name] = Function(
            name, (*added, *function.params[len(numbers) :]), function.results, function.nodes
        )


def _generic(body: _Body, eqn: Any, draft: Draft, context: _Context) -> None:
    """A primitive that carries programs and is not known here: keep them as functions it calls."""
    names = []
    for value in eqn.params.values():
        for program in value if isinstance(value, (list, tuple)) else (value,):
            if is_program(program) and isinstance(program, (ClosedJaxpr, Jaxpr)):
                names.append(body.subfunction(program, f"{eqn.primitive.name}_body", context)[0])
    draft.calls = tuple(names)


_CONTROL: Mapping[str, Callable[[_Body, Any, Draft, _Context], None]] = {
    "scan": _scan, "while": _while, "cond": _cond,
}  # fmt: skip


def _finish(
    body: _Body, name: str, params: Sequence[int], results: Sequence[int], owners: Mapping[int, str]
) -> Function:
    name_updates(body.sheet, owners)
    name_unnamed(body.sheet)
    return freeze_function(name, body.sheet, params, results, body.converter.names)


def function_from_jaxpr(
    converter: _Converter, closed: Any, name: str, owners: Sequence[str]
) -> tuple[Function, list[Any]]:
    """One function, its arrays closed over appended to its parameters; `owners` is the layer each result updates."""
    body = _Body(converter)
    params = [body.define(var) for var in closed.jaxpr.invars]
    results = body.flatten(closed.jaxpr, closed.consts, params, _Context())
    constants = body.used_constants(results)
    written = {number: layer for number, layer in zip(results, owners, strict=True) if layer}
    function = _finish(body, name, [*params, *(number for number, _ in constants)], results, written)
    return function, [array for _, array in constants]


def graph_from_jaxpr(
    closed_jaxpr: Any,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    *,
    name: str = "model",
    batch_size: int = 1,
    mode: Any = "function",
    layers: Mapping[str, str] | None = None,
    assumptions: Sequence[str] = (),
) -> Graph:
    """Convert a closed jaxpr whose parameters and results are described by `inputs` and `outputs`.

    `layers` maps layer paths to Keras classes; without it every scope of the name stack counts as a layer.
    Arrays the jaxpr closes over become entry parameters of role `"constant"` after the others.
    """
    converter = _Converter(LayerNames(layers or {}))
    owners = ["" if output.updates is None else inputs[output.updates].layer for output in outputs]
    function, constants = function_from_jaxpr(converter, closed_jaxpr, "main", owners)
    described = (*inputs, *(Input(name=f"constant_{i}", role="constant") for i in range(len(constants))))
    functions = {"main": function, **converter.functions}
    return verify_graph(
        Graph(
            functions, "main", described, tuple(outputs), name=name, batch_size=batch_size, mode=mode,
            assumptions=tuple(assumptions),
        )
    )  # fmt: skip


def forget_uninitialized(variables: Iterable[Any]) -> None:
    """Take variables off the list that Keras initialises when any outermost stateless scope ends.

    Variables made without values would otherwise be filled (seconds, and the memory of the whole model) by
    somebody else's scope.
    """
    pending = global_state.get_global_attribute("uninitialized_variables")
    if pending:
        mine = {id(variable) for variable in variables}
        pending[:] = [variable for variable in pending if id(variable) not in mine]
