"""Values of indices that are known while tracing: what a constant array, an iota and arithmetic between them come to.

Asked for from its reader backwards and only of what an index is made of, so that a mask nobody looks up by costs
nothing. A parameter of a loop's body that no turn changes is asked of the function around the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.engine.frontends.expand.fold import evaluate, sorted_together
from workbench.engine.frontends.trace.drafts import Draft, Sheet
from workbench.engine.graph.primitives import Kind, primitive

Array = npt.NDArray[Any]
KINDS = ("int", "uint", "bool", "float32")  # of types that an index is made of
MOST_ELEMENTS = 1 << 22  # of one array on the way: what is larger is left to the program
MOST_REDUCED = 1 << 30  # elements that a reduction may read, in parts that are not kept
MOST_STEPS = 200  # of arithmetic between an index and its constants


@dataclass(slots=True)
class IndexValues:
    """The values known in one function, by number; `outer` is where a parameter comes from that no turn changes."""

    sheet: Sheet
    arrays: dict[int, Any] = field(default_factory=dict)  # arrays closed over
    outer: dict[int, tuple[IndexValues, int]] = field(default_factory=dict)
    _found: dict[int, Array | None] = field(default_factory=dict)
    _made_by: dict[int, Draft] = field(default_factory=dict)
    _looked_at: int = 0

    def of(self, number: int, depth: int = 0) -> Array | None:
        """The value, None where it is not known while tracing."""
        if number not in self._found and depth < MOST_STEPS:
            self._found[number] = self._value(number, depth)
        return self._found.get(number)

    def filled(self, number: int) -> Array | None:
        """The number that is everywhere in a value, None where it is not known or there are several."""
        draft = self._maker(number)
        if draft is None or draft.op != "broadcast_in_dim":
            return None
        spread = draft.operands[0]
        return None if self.sheet.types[spread][0] else self.of(spread)

    def of_all(self, numbers: Sequence[int], depth: int = 0) -> list[Array] | None:
        """The values of several, None if one of them is not known."""
        found = []
        for number in numbers:
            value = self.of(number, depth)
            if value is None:
                return None
            found.append(value)
        return found

    def _value(self, number: int, depth: int) -> Array | None:
        shape, dtype = self.sheet.types[number]
        if not dtype.startswith(KINDS) or self._elements(number) > MOST_ELEMENTS:
            return None
        if 0 in shape:
            return np.zeros(shape, dtype)
        if number in self.arrays:
            return np.asarray(self.arrays[number])
        if number in self.outer:
            around, name = self.outer[number]
            return around.of(name, depth + 1)
        draft = self._maker(number)
        if draft is None or draft.calls or not (len(draft.results) == 1 or draft.op == "sort"):
            return None
        if primitive(draft.op).kind is Kind.REDUCTION and self._elements(draft.operands[0]) > MOST_ELEMENTS:
            return self._reduced(draft, depth + 1)
        values = self.of_all(draft.operands, depth + 1)
        if values is None:
            return None
        if draft.op == "sort":
            together: list[Array] = sorted_together(values, dict(draft.attrs))
            return together[draft.results.index(number)]
        with np.errstate(all="ignore"):
            found = evaluate(draft.op, values, dict(draft.attrs), shape, dtype)
        return None if found is None or np.shape(found) != shape else np.asarray(found).astype(dtype)

    def _elements(self, number: int) -> int:
        return math.prod(self.sheet.types[number][0])

    def _reduced(self, draft: Draft, depth: int) -> Array | None:
        """A reduction of what is too large to be kept, in parts along the longest axis that it leaves."""
        number, attrs = draft.operands[0], _attrs(draft)
        whole, dtype = self.sheet.types[number][0], self.sheet.types[draft.results[0]][1]
        left = [axis for axis in range(len(whole)) if axis not in attrs["axes"]]
        if not left or self._elements(number) > MOST_REDUCED:
            return None
        axis = max(left, key=lambda each: whole[each])
        count = max(1, MOST_ELEMENTS * whole[axis] // self._elements(number))
        found = []
        for first in range(0, whole[axis], count):
            part = self._part(number, axis, slice(first, min(first + count, whole[axis])), depth)
            reduced = None if part is None else evaluate(draft.op, [part], attrs, (), dtype)
            if reduced is None:
                return None
            found.append(reduced)
        return np.concatenate(found, left.index(axis))

    def _part(self, number: int, axis: int, places: slice, depth: int) -> Array | None:
        """The value at some places of an axis: what is made element by element, or spread, is made of parts too."""
        shape, dtype = self.sheet.types[number]
        draft = self._maker(number)
        if self._elements(number) <= MOST_ELEMENTS or draft is None or depth > MOST_STEPS:
            value = self.of(number, depth)
            return None if value is None else value[(slice(None),) * axis + (places,)]
        cut = (*shape[:axis], places.stop - places.start, *shape[axis + 1 :])
        attrs = _attrs(draft)
        if draft.op == "broadcast_in_dim":
            inside = [at for at, to in enumerate(attrs["broadcast_dimensions"]) if to == axis]
        elif primitive(draft.op).kind is Kind.POINTWISE:
            inside = [axis]
        else:
            return None
        values = []
        for operand in draft.operands:
            size = self.sheet.types[operand][0]
            runs = bool(inside) and len(size) > inside[0] and size[inside[0]] == shape[axis]
            value = self._part(operand, inside[0], places, depth + 1) if runs else self.of(operand, depth + 1)
            if value is None:
                return None
            values.append(value)
        found = evaluate(draft.op, values, attrs, cut, dtype)
        return None if found is None else np.asarray(found).astype(dtype)

    def _maker(self, number: int) -> Draft | None:
        for draft in self.sheet.drafts[self._looked_at :]:
            self._made_by.update(dict.fromkeys(draft.results, draft))
        self._looked_at = len(self.sheet.drafts)
        return self._made_by.get(number)


def _attrs(draft: Draft) -> dict[str, Any]:
    return dict(draft.attrs)
