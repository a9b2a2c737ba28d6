"""A field of a number within bounds: what is typed and is none, or lies outside, is told in its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets
import traitlets

EXACT = 2**53  # what is larger, a browser does not hold whole


class Number(ipywidgets.DOMWidget):
    """What the fields of whole numbers and of others share: `minimum` and `maximum` (None: without one), `problem`.

    A number outside of the bounds is brought to the nearer one, and of what is no number the last one stays; `problem`
    and the label say so, until the next value, and through the first compile behind it.
    """

    minimum: float | None
    maximum: float | None
    problem = ""
    _compiled = False
    _kind = "a number"

    def __init__(
        self, label: str, value: float, minimum: float | None, maximum: float | None, *, tooltip: str, **more: Any
    ) -> None:
        self.minimum, self.maximum, self._label = minimum, maximum, label
        text = f"{tooltip.removesuffix('.')}. {self.expected[:1].upper()}{self.expected[1:]}"
        super().__init__(value=value, description=label, tooltip=text, **more)
        self.observe(lambda change: self.tell(""), "value")

    @property
    def expected(self) -> str:
        """`"a whole number from 1 to 64"`."""
        low = "" if self.minimum is None else f" from {self.minimum:,.15g}"
        high = "" if self.maximum is None else f" to {self.maximum:,.15g}"
        return f"{self._kind}{low}{high}"

    def label(self, text: str) -> None:
        """Another label; what was told is over."""
        self._label = text
        self.tell("")

    def tell(self, problem: str) -> None:
        """Say in the label why a value was not taken, or that all is well."""
        self.problem, self._compiled = problem, False
        self.description = f"{self._label}: {problem}" if problem else self._label
        (self.add_class if problem else self.remove_class)("wb-app-refused")

    def settle(self) -> None:
        """A compile begins: what was told stays beside the first one's result, which is of the value told there."""
        if self._compiled:
            self.tell("")
        self._compiled = True

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """What the browser says."""
        if "value" not in sync_data:
            super().set_state(sync_data)
            return
        typed = sync_data["value"]
        number = isinstance(typed, int | float) and not isinstance(typed, bool) and abs(typed) <= EXACT
        taken = self._within(typed) if number else self.value
        self.tell("")
        super().set_state({**sync_data, "value": taken})
        if number and taken == typed:
            return
        size = "small" if number and typed < taken else "large"
        self.tell(f"{typed:,.15g} is too {size}, {taken:,.15g} taken" if number else f"not {self.expected}")
        self.send_state("value")  # the browser has another

    def _within(self, value: float) -> float:
        low = value if self.minimum is None else max(value, self.minimum)
        return low if self.maximum is None else min(low, self.maximum)

    @traitlets.validate("value")
    def _bounded(self, proposal: Any) -> Any:
        return self._within(proposal["value"])


class WholeNumber(Number, ipywidgets.IntText):
    """A field of a whole number."""

    _kind = "a whole number"


class PartNumber(Number, ipywidgets.FloatText):
    """A field of a number with a fraction."""


__all__ = ["Number", "PartNumber", "WholeNumber"]
