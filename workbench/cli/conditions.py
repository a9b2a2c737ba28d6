"""What `--json` prints of a profile, and the conditions of `compare --fail-if`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError

# What `--json` prints and `--fail-if` compares: a name, and how a profile gives it.
METRICS: dict[str, Callable[[Any], float]] = {
    "peak": lambda profile: profile.peak.bytes,
    "max_tile": lambda profile: profile.max_tile_bytes,
    "margin": lambda profile: profile.margin_bytes,
    "cycles": lambda profile: profile.total_cycles,
    "seconds": lambda profile: profile.seconds,
    "samples_per_second": lambda profile: profile.samples_per_second,
}
UNITS = {
    "peak": "bytes",
    "max_tile": "bytes",
    "margin": "bytes",
    "cycles": "cycles",
    "seconds": "seconds",
    "samples_per_second": "samples per second",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition on the change of one metric between two profiles, as in `peak>+2%` or `cycles>1000`.

    `limit` is in the metric's own unit (bytes, cycles, seconds, samples per second), or in percent when `relative`.
    """

    metric: str
    above: bool
    limit: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read `METRIC>LIMIT` or `METRIC<LIMIT`; a limit may carry a sign and end in %."""
        match = re.fullmatch(r"\s*(\w+)\s*([<>])\s*([+-]?\d+(?:\.\d+)?)\s*(%?)\s*", text)
        if match is None or match[1] not in METRICS:
            raise InputError(
                f"cannot read the condition {text!r}",
                expected=f"METRIC>LIMIT or METRIC<LIMIT, as in 'peak>+2%'; metrics: {', '.join(METRICS)}",
            )
        return cls(metric=match[1], above=match[2] == ">", limit=float(match[3]), relative=bool(match[4]))

    def change(self, before: float, after: float) -> float:
        """The change the limit speaks about, in percent or in the metric's unit."""
        if not self.relative:
            return after - before
        if before == 0:
            return math.copysign(math.inf, after) if after else 0.0
        return (after - before) / abs(before) * 100

    def holds(self, before: float, after: float) -> bool:
        """Whether the condition is met, so that the command must fail."""
        change = self.change(before, after)
        return change > self.limit if self.above else change < self.limit

    def __str__(self) -> str:
        return f"{self.metric}{'>' if self.above else '<'}{self.limit:+.15g}{'%' if self.relative else ''}"

    def told(self, before: float, after: float) -> str:
        """The condition that held, with both values and their unit, in all the digits they have."""
        return f"{self} ({before:,.15g} to {after:,.15g} {UNITS[self.metric]})"


def facts(profile: Any) -> dict[str, Any]:
    """The verdict as plain data, for `--json`."""
    peak = {name: getattr(profile.peak, name) for name in ("ipu", "tile", "step", "bytes")}
    numbers = {name: read(profile) for name, read in METRICS.items() if name != "peak"}
    return {"fits": profile.fits, "peak": peak, **numbers, "assumptions": list(profile.assumptions)}
