"""Words that users look for on a profile or an executable, and what has them here under another name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

ON_PROFILES: Mapping[str, str] = {
    "verdict": "summary",
    "is_oom": "fits",
    "oom": "fits",
    "does_fit": "fits",
    "time": "seconds",
    "bytes": "max_tile_bytes",
    "max_memory": "max_tile_bytes",
    "memory_used": "max_tile_bytes",
    "total_bytes": "max_tile_bytes",
    "throughput": "samples_per_second",
}
_CALLS: Mapping[str, str] = {"diagnose": "wb.diagnose({it})", "compare": "wb.compare({it}, another)"}
_OF_EXECUTABLES = ("compiled", "graph", "passes", "program", "request", "run")


def on_a_profile(name: str) -> str:
    """What is said of a name that a profile lacks: where it is, "" where nothing is known of it."""
    if name in _OF_EXECUTABLES:
        return f"an executable has it, which wb.compile returns: executable.{name}"
    return f"did you mean {ON_PROFILES[name]!r}?" if name in ON_PROFILES else _call(name, "profile")


def on_an_executable(name: str, of_profiles: Collection[str]) -> str:
    """What is said of a name that an executable lacks: its profile may have it, `of_profiles` are the names of that."""
    there = ON_PROFILES.get(name, name)
    return f"did you mean 'profile.{there}'?" if there in of_profiles else _call(name, "executable")


def _call(name: str, it: str) -> str:
    return f"write {_CALLS[name].format(it=it)}" if name in _CALLS else ""
