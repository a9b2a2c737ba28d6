"""What a profile offers by name: tables of reports, exports and methods, each filled by the file that defines it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

from workbench.base.checked import checked
from workbench.base.registry import Registry
from workbench.errors import InputError
from workbench.profiler.report import Report


class OfProfile(Protocol):
    """A class of reports that are made from a profile alone."""

    name: ClassVar[str]

    @classmethod
    def from_profile(cls, profile: Any) -> Report:
        """The report of a profile."""


R = TypeVar("R", bound=type[OfProfile])
F = TypeVar("F", bound=Callable[..., Any])

reports: Registry[type[OfProfile]] = Registry("report")
exports: Registry[Callable[..., Any]] = Registry("export")
methods: Registry[Callable[..., Any]] = Registry("method of a profile")


def report(name: str) -> Callable[[R], R]:
    """Of a class of reports: `profile.<name>` is its `from_profile(profile)`, made when first asked for and kept."""

    def register(made: R) -> R:
        for wanted in ("from_profile", "data", "sentence", "to_pandas"):
            if getattr(made, wanted, None) is getattr(Report, wanted, None):
                raise InputError(
                    f"the report {name!r} ({made.__qualname__}) has no {wanted}",
                    expected="from_profile(profile), data, sentence and to_pandas() of its own",
                    todo=f"define {wanted} in {made.__module__}",
                )
        made.name = name
        reports.add(name, made)
        return made

    return register


def method(name: str) -> Callable[[F], F]:
    """Of a function of a profile: `profile.<name>(...)` calls it."""
    return lambda function: methods.add(name, checked(function, name, held=1))  # type: ignore[return-value]


def export(name: str) -> Callable[[F], F]:
    """Of a function of a profile: `profile.to(name, ...)` and `profile.to_<name>(...)` call it."""

    def register(function: F) -> F:
        exports.add(name, checked(function, f"to_{name}", held=1))
        return method(f"to_{name}")(function)

    return register
