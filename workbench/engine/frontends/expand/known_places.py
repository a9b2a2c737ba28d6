"""Slices, look-ups and updates at places known while tracing: views of the operand, joined with what is written.

As the driver and PopLibs do them: a constant start of a dynamic slice or update is a view, into which an update is
copied (graphcore/tensorflow@b2127bba driver/ops/tensor_ops.cc:57-165); a look-up by constants is the rows end to end,
and an addition at constants is one to a view (passes/multi_slice_simplifier.cc, poplibs@7eac0f26
lib/popops/DynamicSlice.cpp:3308, :3825). Only rows that are written in no order, of a table of several columns, stay
an update by index there (passes/scatter_simplifier.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun

from workbench.engine.frontends.expand.factorisations import Expansion
from workbench.engine.frontends.expand.one_by_one import gathered_one_by_one, scattered_one_by_one
from workbench.engine.frontends.expand.windows import EvenSteps, IndexedWindows
from workbench.engine.graph.primitives import Kind, primitive

Array: TypeAlias = Any
Known: TypeAlias = "Sequence[npt.NDArray[Any] | None]"

known_rows_p = Primitive("known_rows")
_COMBINED: Mapping[str, Callable[[Array, Array], Array]] = {
    "scatter": lambda before, written: written,
    "scatter-add": lax.add,
    "scatter-sub": lax.sub,
    "scatter-mul": lax.mul,
    "scatter-min": lax.min,
    "scatter-max": lax.max,
}


def _rows_type(table: Any, *, firsts: tuple[int, ...], counts: tuple[int, ...], repeats: bool) -> ShapedArray:
    return ShapedArray((sum(counts), *table.shape[1:]), table.dtype)


known_rows_p.def_abstract_eval(_rows_type)


def known_rows(table: Array, numbers: npt.NDArray[np.int64]) -> Array:
    """Rows of a table by their numbers, kept as the first and the count of each stretch of neighbours."""
    if not len(numbers):
        return lax.slice_in_dim(table, 0, 0)
    begins = np.flatnonzero(np.append(True, np.diff(numbers) != 1))
    return known_rows_p.bind(
        table,
        firsts=tuple(numbers[begins].tolist()),
        counts=tuple(np.diff(np.append(begins, len(numbers))).tolist()),
        repeats=len(np.unique(numbers)) < len(numbers),
    )


def at_places(eqn: Any, known: Known) -> Expansion | None:
    """What a slice, look-up or update is when `known` are its operands' values, as far as known; None: what it was.

    Of the first operand it is the number that is everywhere in it.
    """
    rule = _RULES.get(primitive(eqn.primitive.name).kind)
    return None if rule is None else rule(eqn, known)


def _starts(eqn: Any, known: Known, sizes: Sequence[int], first: int) -> list[int] | None:
    """Where a slice begins, held inside the operand; None if an axis that is cut begins nobody knows where."""
    starts = []
    for axis, (whole, size) in enumerate(zip(eqn.invars[0].aval.shape, sizes, strict=True)):
        value = known[first + axis] if size != whole else np.zeros(())
        if value is None:
            return None
        starts.append(int(np.clip(value, 0, whole - size)))
    return starts


def _sliced(eqn: Any, known: Known) -> Expansion | None:
    sizes = eqn.params["slice_sizes"]
    starts = _starts(eqn, known, sizes, 1)
    if starts is None:
        return _partly_sliced(eqn, known, sizes)
    limits = [start + size for start, size in zip(starts, sizes, strict=True)]
    return lambda operand, *_: lax.slice(operand, starts, limits)


def _partly_sliced(eqn: Any, known: Known, sizes: Sequence[int]) -> Expansion | None:
    """The axes whose place is known first, a view, then the others (driver/ops/tensor_ops.cc:57-82, :189-200)."""
    shape = eqn.invars[0].aval.shape
    places = {
        axis: int(np.clip(value, 0, whole - size))
        for axis, (value, whole, size) in enumerate(zip(known[1:], shape, sizes, strict=True))
        if value is not None and size != whole
    }
    if not places:
        return None
    first = [places.get(axis, 0) for axis in range(len(shape))]
    last = [first[axis] + sizes[axis] if axis in places else shape[axis] for axis in range(len(shape))]

    def run(operand: Array, *starts: Array) -> Array:
        left = [jnp.zeros_like(start) if axis in places else start for axis, start in enumerate(starts)]
        return lax.dynamic_slice(lax.slice(operand, first, last), left, sizes)

    return run


def _slice_updated(eqn: Any, known: Known) -> Expansion | None:
    sizes = eqn.invars[1].aval.shape
    starts = _starts(eqn, known, sizes, 2)
    if starts is None:
        return None
    spans = [EvenSteps(first=start, step=1, count=size) for start, size in zip(starts, sizes, strict=True)]
    return lambda operand, update, *_: written(operand, update, spans)


def _looked_up(eqn: Any, known: Known) -> Expansion | None:
    if eqn.primitive.name == "dynamic_slice":
        return _sliced(eqn, known)
    if known[1] is None:
        return gathered_one_by_one(eqn)
    windows = IndexedWindows.of_gather(eqn, known[1])
    return None if windows is None else lambda operand, _: _gathered(operand, windows)


def _gathered(operand: Array, windows: IndexedWindows) -> Array:
    positions = windows.positions()
    if positions is None:
        return windows.from_rows(known_rows(windows.table(operand), windows.rows()))
    for axis, numbers in enumerate(positions):
        operand = _taken(operand, axis, numbers)
    return windows.from_axes(operand)


def _taken(operand: Array, axis: int, numbers: npt.NDArray[np.int64]) -> Array:
    """Positions of an axis: a slice if they are evenly apart, else rows."""
    span = EvenSteps.of(numbers)
    if span is None:
        return jnp.moveaxis(known_rows(jnp.moveaxis(operand, axis, 0), numbers), 0, axis)
    if span.step < 0:
        return lax.rev(_taken(operand, axis, numbers[::-1]), (axis,))
    if span.is_whole(operand.shape[axis]):
        return operand
    return lax.slice_in_dim(operand, span.first, span.last + 1, span.step, axis)


def _scattered(eqn: Any, known: Known) -> Expansion | None:
    combine = _COMBINED.get(eqn.primitive.name.replace("_", "-"))
    if combine is lax.add and known[0] is not None and not known[0]:
        combine = _COMBINED["scatter"]  # to nothing
    sets = eqn.primitive.name == "scatter" and eqn.params["update_jaxpr"] is None
    if eqn.primitive.name == "scatter" and not sets:
        combine = _applied(eqn)
    if combine is None:
        return None
    if known[1] is None:
        return scattered_one_by_one(eqn, combine)
    windows = IndexedWindows.of_scatter(eqn, known[1])
    spans = windows.spans()
    if spans is not None:
        return lambda operand, _, updates: _combined(operand, updates, windows, spans, combine)
    if (sets and windows.is_table_of_rows()) or not (sets or windows.are_apart()):
        return None
    return lambda operand, _, updates: _combined_rows(operand, updates, windows, combine)


def _applied(eqn: Any) -> Callable[[Array, Array], Array]:
    """A function of the user's on what is there and what is written (`.at[].apply`)."""
    closed = ClosedJaxpr(eqn.params["update_jaxpr"], eqn.params["update_consts"])
    each = jax.vmap(jaxpr_as_fun(closed))
    return lambda before, update: each(before.reshape(-1), update.reshape(-1))[0].reshape(before.shape)


def _combined(
    operand: Array, updates: Array, windows: IndexedWindows, spans: Sequence[EvenSteps], combine: Any
) -> Array:
    seen = windows.to_axes(updates)
    before = operand
    for axis, span in enumerate(spans):
        if span.step < 0:
            seen = lax.rev(seen, (axis,))
        before = _taken(before, axis, span.rising().numbers())
    return written(operand, combine(before, seen), [span.rising() for span in spans])


def _combined_rows(operand: Array, updates: Array, windows: IndexedWindows, combine: Any) -> Array:
    """Rows of the operand end to end with those that are written, each where the last that goes there is."""
    table, seen = windows.table(operand), windows.to_rows(updates)
    rows, inside = windows.rows(), windows.inside()
    if not inside.any():
        return operand
    if not inside.all():
        seen, rows = known_rows(seen, np.flatnonzero(inside)), rows[inside]
    combined = combine(known_rows(table, rows), seen)
    place = np.arange(table.shape[0])
    place[rows] = table.shape[0] + np.arange(len(rows))
    return windows.from_table(known_rows(jnp.concatenate([table, combined]), place))


def written(operand: Array, update: Array, spans: Sequence[EvenSteps], axis: int = 0) -> Array:
    """The operand with an update at rising `spans` of its axes: what is before, in and behind them end to end."""
    while axis < len(spans) and spans[axis].is_whole(operand.shape[axis]):
        axis += 1
    if axis == len(spans):
        return update
    span = spans[axis]
    inside = written(_taken(operand, axis, span.numbers()), update, spans, axis + 1)
    groups = span.groups(operand.shape[axis])
    end = span.first + groups * span.step
    parts = [
        lax.slice_in_dim(operand, 0, span.first, axis=axis),
        _led(lax.slice_in_dim(operand, span.first, end, axis=axis), _head(inside, groups, axis), span.step, axis),
        lax.slice_in_dim(inside, groups, span.count, axis=axis),
        lax.slice_in_dim(operand, end + span.count - groups, operand.shape[axis], axis=axis),
    ]
    return lax.concatenate([part for part in parts if part.shape[axis]], axis)


def _head(value: Array, count: int, axis: int) -> Array:
    return lax.slice_in_dim(value, 0, count, axis=axis)


def _led(operand: Array, leads: Array, step: int, axis: int) -> Array:
    """Groups of `step` entries of an axis with a lead each in place of their first."""
    if step == 1:
        return leads
    shape = operand.shape
    groups = operand.reshape(*shape[:axis], shape[axis] // step, step, *shape[axis + 1 :])
    rest = lax.slice_in_dim(groups, 1, step, axis=axis + 1)
    return lax.concatenate([lax.expand_dims(leads, (axis + 1,)), rest], axis + 1).reshape(shape)


_RULES: Mapping[Kind, Callable[[Any, Known], Expansion | None]] = {
    Kind.LOOKUP: _looked_up,
    Kind.UPDATE: _slice_updated,
    Kind.SCATTER: _scattered,
}
