"""Values of a hypothesis strategy by seed, the same whatever else is loaded."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BYTES = 1 << 14


def drawn(strategy: st.SearchStrategy[Any], seed: int) -> Any:
    """A value that random bytes of this seed make. Hypothesis' own search would take constants of our modules too."""
    found: list[Any] = []

    @settings(database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(strategy)
    def keep(value: Any) -> None:
        found.append(value)

    source = random.Random(seed)
    while not found:  # bytes may run out, or be refused
        keep.hypothesis.fuzz_one_input(source.randbytes(BYTES))
    return found[0]
