"""Layers whose results are kept where the rest is made again, by name or pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from workbench.errors import InputError


@dataclass(slots=True)
class Patterns:
    """Names of layers, or patterns such as `encoder_*`; `used` collects those that some layer has."""

    names: tuple[str, ...]
    used: set[str] = field(default_factory=set)

    def matching(self, path: str) -> str:
        """The part of a layer path that a pattern names, "" when none does."""
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            name = "/".join(parts[:end])
            for pattern in self.names:
                if path and (fnmatchcase(name, pattern) or fnmatchcase(parts[end - 1], pattern)):
                    self.used.add(pattern)
                    return name
        return ""

    def check(self) -> None:
        """A pattern that no layer has is an `InputError`."""
        unknown = [pattern for pattern in self.names if pattern not in self.used]
        if unknown:
            raise InputError(
                f"no layer is called {unknown[0]!r} to keep the result of",
                expected="names of layers of the model, or patterns such as 'encoder_*'",
            )
