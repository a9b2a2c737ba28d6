"""One number taken apart, and how that is written: its rule, its source, how far such numbers usually are off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.base.units import bytes_text, cycles_text, percent_text
from workbench.profiler.fidelity import NOT_KNOWN, TypicalError, error_text

MAX_PARTS_SHOWN = 12
LONGEST_INPUT = 120


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """One number taken apart. `unit` is "bytes" or "cycles"; the values of `parts` sum to `value`.

    `formula` states the rule in words, `arithmetic` what it comes to with its `inputs`, by whose names it goes, and
    `source` where it was read; `needs` are inputs that were worked out themselves. A sum has no source of its own: its
    parts have theirs. `error` is how far published numbers of the same kind, and of no
    other, are from ours; None where there are none. Of the parts of parts, text goes down to `depth`; 1 is one line.
    """

    subject: str
    value: int
    unit: str
    formula: str
    arithmetic: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    error: TypicalError | None = None
    needs: tuple[Explanation, ...] = ()
    parts: tuple[Explanation, ...] = ()
    depth: int | None = None

    @property
    def typical_error(self) -> float | None:
        """The typical relative error as a fraction; None when it is not known."""
        return self.error.typical if self.error else None

    def __str__(self) -> str:
        return self.sentence if self.depth == 1 else "\n".join(self.lines(depth=self.depth))

    def __repr__(self) -> str:
        return str(self)  # what a notebook shows

    @property
    def sentence(self) -> str:
        """One line: the number, and what most of it is."""
        text = f"{self.subject}: {self._shown}"
        if not self.parts:
            return f"{text}, {self.formula}"
        most = max(self.parts, key=lambda part: part.value)
        share = percent_text(most.value / self.value) if self.value else percent_text(0)
        return f"{text}; {share} of it is {most.subject}"

    @property
    def _shown(self) -> str:
        return cycles_text(self.value) if self.unit == "cycles" else bytes_text(self.value)

    @property
    def _exactly(self) -> str:
        return self._shown + (f" ({self.value:,} {self.unit})" if abs(self.value) >= 1000 else "")

    @property
    def _sum(self) -> str:
        """The sum of the parts, as they are shown; that of one part is the part."""
        numbers = [part.value for part in self.parts[:MAX_PARTS_SHOWN]]
        if rest := sum(part.value for part in self.parts[MAX_PARTS_SHOWN:]):
            numbers.append(rest)
        return " + ".join(map(str, numbers))

    def tree(self, depth: int = 4) -> dict[str, Any]:
        """The explanation as JSON data, parts of parts down to `depth`; what is left out of each is counted."""
        below = depth - 1
        rest = self.parts[MAX_PARTS_SHOWN:] if below else self.parts
        left = Explanation(subject="", value=sum(part.value for part in rest), unit=self.unit, formula="")
        return {
            "subject": self.subject,
            "value": self.value,
            "shown": self._exactly,
            "formula": self.formula,
            "arithmetic": _cut(self.arithmetic or self._sum),
            "inputs": [[str(name), _cut(value)] for name, value in self.inputs.items()],
            "source": self.source,
            "error": str(self.error) if self.error else NOT_KNOWN,
            "needs": [need.tree(below) for need in self.needs[:MAX_PARTS_SHOWN] if below],
            "parts": [part.tree(below) for part in self.parts[:MAX_PARTS_SHOWN] if below],
            "rest": f"{len(rest)} more: {left._exactly}" if rest else "",
        }

    def lines(
        self, indent: str = "", depth: int | None = None, said: frozenset[TypicalError] = frozenset()
    ) -> list[str]:
        """The explanation as text, parts indented; an error that is `said` above is told without its count."""
        short = f"typical error {error_text(self.error.typical)}" if self.error in said and self.error else ""
        error = short or (str(self.error) if self.error else NOT_KNOWN)
        found = [f"{indent}{self.subject}: {self._exactly}, {error}", f"{indent}  = {self.formula}"]
        if worked := self.arithmetic or self._sum:
            found.append(f"{indent}  so {worked}")
        if self.inputs:
            shown = ", ".join(f"{name} = {_cut(value)}" for name, value in self.inputs.items())
            found.append(f"{indent}  with {shown}")
        if self.source:
            found.append(f"{indent}  from {self.source}")
        if depth == 1:
            return found
        below = said | ({self.error} if self.error else set())
        for need in self.needs[:MAX_PARTS_SHOWN]:
            first, *others = need.lines(indent + "    ", depth and depth - 1, below)
            found += [f"{indent}  where {first.lstrip()}", *others]
        for part in self.parts[:MAX_PARTS_SHOWN]:
            found += part.lines(indent + "  ", depth and depth - 1, below)
        if rest := self.parts[MAX_PARTS_SHOWN:]:
            left = Explanation(subject="", value=sum(part.value for part in rest), unit=self.unit, formula="")
            found.append(f"{indent}  and {len(rest)} smaller ones: {left._exactly}")
        return found


def _cut(value: Any) -> str:
    """What was put in, as text; of a long list its beginning, as its numbers stand in the arithmetic."""
    text = str(value)
    return text if len(text) <= LONGEST_INPUT else f"{text[:LONGEST_INPUT]}…"
