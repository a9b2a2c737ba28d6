"""What a loop waits for its feed, by hand."""

from __future__ import annotations

import pytest

from workbench.engine.time.host_waits import starved_cycles

RATE = {"bytes_per_second": 1e9, "clock_hz": 1e9}  # a byte a cycle


@pytest.mark.parametrize(
    ("turns", "ahead", "turn", "fetched", "waited"),
    [
        (10, 2, 100, 90, 0),  # the host is faster
        (10, 2, 100, 200, 70),  # (8 x 200 - 9 x 100) / 10
        (10, 5, 100, 200, 10),  # (5 x 200 - 9 x 100) / 10
        (10, 10, 100, 10**6, 0),  # all of them were there before
        (10, 1, 100, 90, 27),  # (9 x (90 + 40) - 9 x 100) / 10: not while 40 cycles copy
        (1, 1, 100, 10**6, 0),
        (0, 0, 100, 10**6, 0),
        (3, 2, 10, 100, 27),  # (100 - 20) / 3, rounded up
    ],
)
def test_turns_share_what_the_last_element_is_late(
    turns: int, ahead: int, turn: int, fetched: int, waited: int
) -> None:
    assert starved_cycles(turns, ahead, turn, 40, fetched, **RATE) == waited


def test_deeper_never_waits_longer() -> None:
    waits = [starved_cycles(20, ahead, 100, 40, 300, **RATE) for ahead in range(1, 21)]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > waits[1] > waits[10] > waits[-1] == 0
