"""One function on its way to the graph: what surrounds an equation, and the numbers its values have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from workbench.base.dtypes import ITEMSIZE_BYTES, dtype_name
from workbench.base.identity import ByIdentity
from workbench.engine.frontends.describe.name_stack import LayerNames, Place, Stack, place_of
from workbench.engine.frontends.expand.expansions import Expander
from workbench.engine.frontends.expand.fold import FOLDED_DTYPES, LARGEST_FOLDED_ARRAY
from workbench.engine.frontends.trace.drafts import Draft, Sheet, freeze_function, name_unnamed, name_updates, prune
from workbench.engine.frontends.trace.frames import Frames
from workbench.engine.frontends.trace.heard import Listener, listener
from workbench.engine.frontends.trace.index_values import IndexValues
from workbench.engine.frontends.trace.jaxpr_params import plain_attributes
from workbench.engine.graph import Function
from workbench.engine.graph.origin import Direction
from workbench.engine.graph.primitives import Kind, primitive
from workbench.errors import InputError


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
    listener: Listener | None = field(default_factory=listener)  # of products

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
class Body(ABC):
    """The values and drafts of one function so far; `flatten` says how equations become drafts."""

    converter: Converter
    sheet: Sheet = field(default_factory=Sheet)
    constants: ByIdentity[Any, int] = field(default_factory=ByIdentity)  # array -> number
    known: dict[int, Any] = field(default_factory=dict)  # number -> value, for folding
    owners: dict[Any, str] = field(default_factory=dict)  # outermost result variable -> layer it belongs to
    values: IndexValues = field(init=False)

    def __post_init__(self) -> None:
        self.values = IndexValues(self.sheet)

    def own(self, outvars: Sequence[Any], layers: Sequence[str]) -> None:
        """Say which layers results belong to."""
        held = zip(outvars, layers, strict=True)
        self.owners.update((var, layer) for var, layer in held if not isinstance(var, Literal))

    def define(self, var: Any, primitive_name: str = "", layer: str = "", source: str = "") -> int:
        """A new number for a jaxpr variable; what makes it is told where it cannot be computed with."""
        aval = var.aval
        dtype = dtype_name(aval.dtype)
        if dtype not in ITEMSIZE_BYTES:
            raise InputError(
                f"the model computes with {dtype} values, which the IPU does not have"
                f"{_made_by(primitive_name, layer, source)}",
                expected="float32, float16, bfloat16, integers or booleans",
                todo=_todo(dtype),
            )
        return self.sheet.number(tuple(int(size) for size in aval.shape), dtype)

    def constant(self, array: Any) -> int:
        """A closed-over value: a scalar is a literal, an array becomes a parameter of the function."""
        if np.shape(array) == () and hasattr(array, "dtype") and dtype_name(array.dtype) != "key":
            return self.scalar(np.asarray(array).item(), dtype_name(array.dtype))
        if array not in self.constants:
            shape = tuple(int(size) for size in np.shape(array))
            number = self.sheet.number(shape, dtype_name(array.dtype))
            self.constants[array] = number
            self.values.arrays[number] = array
            if np.size(array) <= LARGEST_FOLDED_ARRAY and dtype_name(array.dtype) in FOLDED_DTYPES:
                self.known[number] = np.asarray(array)
        return self.constants[array]

    def read(self, env: dict[Any, int], atom: Any) -> int:
        """The number of a variable or literal."""
        if not isinstance(atom, Literal):
            return env[atom]
        if np.shape(atom.val) != ():
            return self.constant(atom.val)
        return self.scalar(np.asarray(atom.val).item(), dtype_name(atom.aval.dtype))

    @abstractmethod
    def flatten(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[int], context: Context) -> list[int]:
        """Add the equations of a jaxpr called on `args`; the numbers of its results."""

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

    def draft(self, eqn: Any, operands: list[int], context: Context) -> Draft:
        """One equation with its attributes and origin."""
        converter = self.converter
        place = converter.place(context, converter.read_stack(eqn))
        if context.region and context.source:
            region, source = context.region, context.source
        else:
            found, line = converter.frames.read(converter.read_traceback(eqn))
            region, source = context.region or found, context.source or line
        source = place.source or source
        attributes = plain_attributes(eqn.primitive.name, eqn.params)
        is_product = primitive(eqn.primitive.name).kind is Kind.PRODUCT
        if place.partials and is_product:
            attributes = tuple(sorted((*attributes, ("partials_type", place.partials))))
        if place.feed:
            attributes = tuple(sorted((*attributes, *place.feed)))
        draft = Draft(
            eqn.primitive.name,
            tuple(operands),
            tuple(self.define(var, eqn.primitive.name, place.layer, source) for var in eqn.outvars),
            attributes,
            place.layer,
            place.call,
            place.direction,
            region,
            source,
            shard=place.shard,
        )
        if is_product and converter.listener is not None:
            converter.listener(self.sheet.node(draft))
        return draft

    def used_constants(self, results: Sequence[int]) -> list[tuple[int, Any]]:
        """The arrays closed over that something needs, with their numbers."""
        prune(self.sheet, results)
        needed = {number for draft in self.sheet.drafts for number in draft.operands} | set(results)
        return [(number, array) for array, number in self.constants.items() if number in needed]

    def subfunction(
        self, program: Any, wanted: str, context: Context, owners: Sequence[str] = (), unchanged: Sequence[int] = ()
    ) -> tuple[str, list[int]]:
        """Convert a body into a function of its own; the outer numbers of the arrays it closes over.

        `owners` is the layer each result belongs to, as far as known; `unchanged` are the outer numbers of its first
        parameters, which are the same whenever it runs.
        """
        jaxpr, consts = open_program(program)
        body = type(self)(self.converter)
        if owners:
            body.own(jaxpr.outvars, owners)
        params = [body.define(var) for var in jaxpr.invars]
        body.values.outer.update(
            (param, (self.values, number)) for param, number in zip(params, unchanged, strict=False)
        )
        body.known.update(
            (param, self.known[number])
            for param, number in zip(params, unchanged, strict=False)
            if number in self.known
        )
        results = body.flatten(jaxpr, consts, params, context)
        constants = body.used_constants(results)
        captured = [self.constant(array) for _, array in constants]
        name = self.converter.fresh_name(wanted)
        owned = {number: layer for number, layer in zip(results, owners, strict=False) if layer}
        function = finish(body, name, [*(number for number, _ in constants), *params], results, owned)
        self.converter.functions[name] = function
        return name, captured


def _made_by(primitive_name: str, layer: str, source: str) -> str:
    """What makes a value, and where that is written, as far as it is known."""
    if not primitive_name:
        return ""
    return f": {primitive_name}{f' of layer {layer}' if layer else ''} makes them{f', at {source}' if source else ''}"


def _todo(dtype: str) -> str:
    """What gets rid of values of a type that the IPU does not have."""
    if dtype == "float64" and jax.config.jax_enable_x64:
        return "switch jax_enable_x64 off, with which JAX makes 64-bit numbers, or make these with dtype='float32'"
    return (
        "express the operation in real numbers (a Fourier transform as products with the matrices of its cosines and "
        "sines), or keep it on the host"
    )


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
