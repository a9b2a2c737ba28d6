"""What the schedulers' estimate says is live in small orders of instructions, as the driver's tests state them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from workbench.engine.passes.schedule.liveness import Instruction, live_bytes, live_sets, peak_bytes

Named = tuple[tuple[str, Instruction], ...]


def live(case: Case) -> Any:
    """The answer to one case."""
    name = case["id"].removeprefix("LIVE-")
    if name in _RULES:
        return _RULES[name]()
    told = next((rule for words, rule in _WORDS.items() if re.search(words, said(case), re.IGNORECASE)), None)
    return told() if told else NotRun(f"no order called {name!r}")


def _order(*rows: tuple[str, Sequence[Any], Sequence[Any]]) -> Named:
    return tuple((name, Instruction(reads=tuple(reads), makes=tuple(makes))) for name, reads, makes in rows)


# Two squares in place, their sum in the place of the first, and a third argument: a tuple of both.
_SQUARES = _order(
    ("arg0", (), ("b0",)),
    ("mul0", ("b0",), ()),
    ("arg1", (), ("b1",)),
    ("mul1", ("b1", "b0"), ()),
    ("add", ("b0", "b1"), ()),
    ("arg2", (), ("b2",)),
    ("result", ("b0", "b2"), ()),
)
# A sum in the place of its first operand, a loop that works on it, a constant added in place.
_CALLS = _order(
    ("p0", (), (2,)),
    ("p1", (), (3,)),
    ("add0", (3, 2), ()),
    ("call2", (3,), ()),
    ("const1", (), (5,)),
    ("add1", (3, 5), ()),
)
_SIZES = {"b0": 2 * 4, "b1": 2 * 4, "b2": 100 * 4}


def _sets(order: Named, results: Sequence[Any]) -> dict[str, list[Any]]:
    found = live_sets([each for _, each in order], results)
    return {name: sorted(one) for (name, _), one in zip(order, found, strict=True)}


def _result_is_live() -> bool:
    return _sets(_order(("x", (), ("x",)), ("y", ("x",), ("y",))), ["y"])["y"] == ["x", "y"]


def _unused_is_dead() -> bool:
    found = _sets(_order(("x", (), ("x",)), ("unused", ("x",), ("unused",)), ("y", ("x",), ("y",))), ["y"])
    return all("unused" not in one for one in found.values())


def _overwritten_parameters_are_live() -> bool:
    body = [Instruction(makes=("p",)), Instruction(reads=("p",), makes=("q",)), Instruction(reads=("q",), makes=("r",))]
    return all("p" in one for one in live_sets(body, ["r"], always=["p"]))


def _calls() -> int:
    """Instructions with bytes of their own and of a body they call; each is a moment of its own."""
    own, called = (5451, 230, 5500, 80, 499), ((), (), (2000,), (8000,), ())
    most = 0
    for size, bodies in zip(own, called, strict=True):
        moment = [Instruction(makes=("x",)), Instruction(reads=("x",), called_bytes=bodies)]
        most = max(most, peak_bytes(moment, [], {"x": size}))
    return most


# Two arguments, their sum, a third argument, its sum with the first.
_SUMS = _order(
    ("arg0", (), ("b0",)),
    ("arg1", (), ("b1",)),
    ("add", ("b1", "b0"), ()),
    ("arg2", (), ("b2",)),
    ("add2", ("b2", "b0"), ("b3",)),
)


def _made_late() -> bool:
    """A buffer is not yet live where it is defined, live behind that, and where it is read."""
    found = _sets(_SUMS, ["b3"])
    return not found["arg0"] and found["arg1"] == ["b0"] and {"b0", "b1"} <= set(found["add"])


def _read_last() -> bool:
    found = _sets(_SUMS, ["b3"])
    return "b1" not in found["arg2"] and "b1" not in found["add2"]


def _returned_is_live() -> bool:
    """What a call returns is live behind the call and not before."""
    order = _order(("c0", (), ("b0",)), ("c1", (), ("b2",)), ("call0", ("b0",), ("b1",)), ("root", ("b1", "b2"), ()))
    found = _sets(order, [])
    return "b1" in found["root"] and all("b1" not in found[name] for name in ("c0", "c1", "call0"))


def _early_argument() -> int:
    """The squares again, the third argument first: it is live beside the square and the second argument."""
    order = dict(_SQUARES)
    again = [order[name] for name in ("arg2", "arg0", "mul0", "arg1", "mul1", "add", "result")]
    return peak_bytes(again, ["b0", "b2"], _SIZES)


def _largest_moment() -> int:
    """The most of several moments, each with one buffer; a size no moment has does not count."""
    sizes = {"a": 5451, "b": 7500, "c": 230, "d": 499, "none": 999_999}
    order = [each for name in "abcd" for each in (Instruction(makes=(name,)), Instruction(reads=(name,)))]
    return peak_bytes(order, [], sizes)


_RULES: dict[str, Callable[[], Any]] = {
    "final-alive": _result_is_live,
    "unused-dead": _unused_is_dead,
    "inplace-params": _overwritten_parameters_are_live,
    "muladd-sets": lambda: _sets(_SQUARES, ["b0", "b2"]),
    "muladd-408": lambda: peak_bytes([each for _, each in _SQUARES], ["b0", "b2"], _SIZES),
    "calls-sets": lambda: _sets(_CALLS, [3]),
    "sum": lambda: live_bytes({0, 1, 2, 3, 5}, {0: 100, 1: 100, 2: 300, 3: 10, 5: 5000, 6: 99_999}),
    "subcomp": _calls,
    "dead-at-def": _made_late,
    "alive-after-def": _made_late,
    "alive-at-read": _made_late,
    "dead-after-read": _read_last,
    "returned-alive": _returned_is_live,
    "muladd-416": _early_argument,
    "max": _largest_moment,
    "cond": lambda: peak_bytes([Instruction(called_bytes=(8, 8))], [], {}),
}

# Words of a description -> the rule it tells, for other ids.
_WORDS: dict[str, Callable[[], Any]] = {
    r"dead (?:at|before)[^.;]*defin|not (?:yet )?(?:a?live) at[^.;]*defin|alive after[^.;]*defin": _made_late,
    r"a?live at[^.;]*(?:read|us)": _made_late,
    r"dead after[^.;]*(?:read|us)": _read_last,
    r"return[^.;]*a?live[^.;]*call": _returned_is_live,
    r"\b416\b|arg2[^.;]*(?:first|front)": _early_argument,
    r"max(?:imum)? (?:of|over)[^.;]*(?:instruction|live)": _largest_moment,
}
