"""What running a case gives: an answer in the shape of what is expected, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Case: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NotRun:
    """No answer, because `reason`."""

    reason: str


def said(case: Case) -> str:
    """All the words of a case: how its program is described, configured and measured."""
    return " ".join(str(case.get(key) or "") for key in ("description", "config", "quantity"))


def source_of(case: Case) -> str:
    """The file, lines and test a case is taken from."""
    source = case.get("source")
    return str(source.get("path", "")) if isinstance(source, Mapping) else str(source or "")
