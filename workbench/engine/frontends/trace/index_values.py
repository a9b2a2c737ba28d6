"""Values of indices that are known while tracing: what a constant array, an iota and arithmetic between them come to.

Asked for from its reader backwards and only of what an index is made of, so that a mask nobody looks up by costs
nothing. A parameter of a loop's body that no turn changes is asked of the function around the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.engine.frontends.expand.fold import evaluate
from workbench.engine.frontends.trace.drafts import Draft, Sheet

Array = npt.NDArray[Any]
KINDS = ("int", "uint", "bool", "float32")  # of types that an index is made of
MOST_ELEMENTS = 1 << 22  # of one array on the way: what is larger is left to the program
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
        if not dtype.startswith(KINDS) or int(np.prod(shape, dtype=np.float64)) > MOST_ELEMENTS:
            return None
        if 0 in shape:
            return np.zeros(shape, dtype)
        if number in self.arrays:
            return np.asarray(self.arrays[number])
        if number in self.outer:
            around, name = self.outer[number]
            return around.of(name, depth + 1)
        draft = self._maker(number)
        if draft is None or draft.calls or len(draft.results) != 1:
            return None
        values = self.of_all(draft.operands, depth + 1)
        if values is None:
            return None
        with np.errstate(all="ignore"):
            found = evaluate(draft.op, values, dict(draft.attrs), shape, dtype)
        return None if found is None or np.shape(found) != shape else np.asarray(found).astype(dtype)

    def _maker(self, number: int) -> Draft | None:
        for draft in self.sheet.drafts[self._looked_at :]:
            self._made_by.update(dict.fromkeys(draft.results, draft))
        self._looked_at = len(self.sheet.drafts)
        return self._made_by.get(number)
