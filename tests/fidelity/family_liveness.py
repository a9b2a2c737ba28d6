"""What the schedulers' estimate says is live in small orders of instructions, as the driver's tests state them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.fidelity.outcome import Case, NotRun
from workbench.engine.passes.scheduler_liveness import Instruction, live_bytes, live_sets, peak_bytes

Named = tuple[tuple[str, Instruction], ...]


def live(case: Case) -> Any:
    """The answer to one case."""
    name = case["id"].removeprefix("LIVE-")
    return _RULES[name]() if name in _RULES else NotRun(f"no order called {name!r}")


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


_RULES: dict[str, Callable[[], Any]] = {
    "final-alive": _result_is_live,
    "unused-dead": _unused_is_dead,
    "inplace-params": _overwritten_parameters_are_live,
    "muladd-sets": lambda: _sets(_SQUARES, ["b0", "b2"]),
    "muladd-408": lambda: peak_bytes([each for _, each in _SQUARES], ["b0", "b2"], _SIZES),
    "calls-sets": lambda: _sets(_CALLS, [3]),
    "sum": lambda: live_bytes({0, 1, 2, 3, 5}, {0: 100, 1: 100, 2: 300, 3: 10, 5: 5000, 6: 99_999}),
    "subcomp": _calls,
    "cond": lambda: peak_bytes([Instruction(called_bytes=(8, 8))], [], {}),
}
