"""How near an answer is to what was measured: exact, within the case's own band, and the logarithm of the ratio."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.fidelity.family_compute_sets import operations
from tests.fidelity.outcome import Case

EXACT = 1e-9
FACTOR = re.compile(r"within x\s*([\d.]+)")
PERCENT = re.compile(r"within (?:\+-)?([\d.]+)\s*%")
ORDER = re.compile(r"^ordering|/ ordering")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of one case. `error` is the largest |ln(answer / expected)| over its numbers; None when it has none."""

    exact: bool
    within: bool
    error: float | None


def band(case: Case) -> float | None:
    """The factor a case grants: 1 for exact, None when only an ordering is claimed."""
    text = str(case.get("reproducibility") or "exact")
    if found := FACTOR.search(text):
        return float(found[1])
    if found := PERCENT.search(text):
        return 1 + float(found[1]) / 100
    return None if ORDER.search(text) else 1.0


def judge(case: Case, answer: Any, expected: Any) -> Verdict:
    """Compare an answer with what was measured."""
    if bound := bound_of(case):
        holds = answer <= expected if bound == "upper" else answer >= expected
        return Verdict(exact=holds, within=holds, error=None)
    if str(case.get("id")).startswith("INEQ"):
        ours, theirs = signs(answer), signs(expected)
        holds = ours == theirs if theirs else set(ours) == {"<"}
        return Verdict(exact=holds, within=holds, error=None)
    if isinstance(expected, dict) and "says" in expected:
        holds = told(answer, expected)
        return Verdict(exact=holds, within=holds, error=None)
    if str(case.get("id")).startswith("CS-"):
        expected = operations(expected)
    if "in range" in str(case.get("quantity")):
        holds = min(expected) <= min(answer) <= max(answer) <= max(expected)
        return Verdict(exact=holds, within=holds, error=None)
    pairs = [(ours, theirs) for _, ours, theirs in named_leaves(answer, expected)]
    errors = [error_of(ours, theirs) for ours, theirs in pairs]
    numbers = [error for error in errors if error is not None]
    equal = all(_same(ours, theirs) for ours, theirs in pairs)
    worst = max(numbers, default=None)
    granted = band(case)
    alike = all(_same(ours, theirs) for ours, theirs in pairs if error_of(ours, theirs) is None)
    within = equal if granted == 1.0 else alike and (granted is None or (worst or 0.0) <= math.log(granted))
    return Verdict(exact=equal, within=within, error=worst)


def told(answer: Any, expected: dict[str, Any]) -> bool:
    """Whether an error is of the kind expected, and its text names the facts; a text alone has no kind."""
    text = answer if isinstance(answer, str) else f"{answer.get('exception')} {answer.get('message')}"
    first = getattr(builtins, text.partition(" ")[0], None)
    wanted = getattr(builtins, expected["exception"], None)
    kind = not (isinstance(first, type) and isinstance(wanted, type)) or issubclass(first, wanted)
    return kind and all(fact in text for fact in expected["says"])


def signs(text: Any) -> list[str]:
    """The relations in an inequality written as text."""
    return re.findall(r"<=|>=|<|>|=", str(text))


def same_order(ours: list[float], theirs: list[float]) -> bool:
    """Whether every pair stands in the order measured; numbers measured as equal may stand in any."""
    pairs = [(a, b) for a in range(len(theirs)) for b in range(len(theirs)) if theirs[a] < theirs[b]]
    return all(ours[a] < ours[b] for a, b in pairs)


def bound_of(case: Case) -> str | None:
    """`"upper"` or `"lower"` when the case states a limit rather than a value."""
    text = f"{case.get('tolerance') or ''} {case.get('quantity') or ''}"
    if "upper bound" in text or "<=" in text:
        return "upper"
    return "lower" if "lower bound" in text else None


def named_leaves(answer: Any, expected: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Place, ours and theirs of what is expected, a place as `total` or `tiles.0`; a missing answer is None."""
    if isinstance(expected, dict):
        ours = answer if isinstance(answer, dict) else {}
        for key in expected:
            yield from named_leaves(ours.get(key), expected.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(answer, list) and len(answer) == len(expected):
        for number, (one, other) in enumerate(zip(answer, expected, strict=True)):
            yield from named_leaves(one, other, f"{place}.{number}".lstrip("."))
    else:
        yield place, answer, expected


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(ours: Any, theirs: Any) -> bool:
    if _number(ours) and _number(theirs):
        return math.isclose(ours, theirs, rel_tol=EXACT)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


def error_of(ours: Any, theirs: Any) -> float | None:
    """|ln ratio| of two numbers; zero against another number is an infinite error."""
    if not (_number(ours) and _number(theirs)):
        return None
    if ours == theirs:
        return 0.0
    return abs(math.log(ours / theirs)) if ours > 0 and theirs > 0 else math.inf
