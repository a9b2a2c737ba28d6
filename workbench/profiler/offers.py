"""What a profile offers by name, looked up in its registries. The stub beside this file lists it for editors and mypy.

`make stub` writes the stub again when a report, an export or a method was added.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from workbench.base.text import no_attribute
from workbench.profiler.registry import methods, reports
from workbench.profiler.words import on_a_profile


class Offers:
    """Base of `Profile`: its reports, each made once, and the functions that are registered as its methods."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or hasattr(type(self), name):  # an error inside one of its own: told as it was
            return object.__getattribute__(self, name)
        if name in methods:  # asked first: saving a profile loads no report
            return MethodType(methods.get(name), self)
        if name in reports:
            return self.__dict__.setdefault(name, reports.get(name).from_profile(self))
        raise no_attribute(f"{type(self).__name__!r} object", name, dir(self), on_a_profile(name))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *reports, *methods})
