"""Short ways to compile what a case describes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from workbench import ipu
from workbench.profiler.profile import Profile


def struct(*shape: int, dtype: str = "float32") -> Any:
    """Shape and type of an input."""
    import jax

    return jax.ShapeDtypeStruct(shape, dtype)


def config(*, matmuls: dict[str, str] | None = None, convolutions: dict[str, str] | None = None) -> Any:
    """A configuration of one IPU with the library options given."""
    made = ipu.config.IPUConfig()
    made.auto_select_ipus = 1
    made.matmuls.poplar_options = dict(matmuls or {})
    made.convolutions.poplar_options = dict(convolutions or {})
    return made


def breakdown(profile: Profile) -> Counter[str]:
    """Cycles by cause over all IPUs."""
    found: Counter[str] = Counter()
    table = profile.tables["cycle_breakdown"]
    for cause, cycles in zip(table["cause"], table["cycles"], strict=True):
        found[str(cause)] += int(cycles)
    return found
