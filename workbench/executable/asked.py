"""What of a compile's arguments no option holds, in words: they are laid over a profile, which is kept without them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.base.text import shown
from workbench.profiler.profile import Profile, with_meta

if TYPE_CHECKING:
    from workbench.executable.request import Request

TOLD = ("precision", "loss", "optimizer")


def asked(request: Request) -> dict[str, str]:
    """By name, what was given for each argument of `TOLD`; nothing of those that were not."""
    given = {name: getattr(request, name) for name in TOLD}
    return {name: shown(_words(value)) for name, value in given.items() if value is not None}


def with_asked(profile: Profile, request: Request) -> Profile:
    """The profile with what was `asked` in its meta."""
    return with_meta(profile, asked=asked(request))


def _words(value: Any) -> str:
    """A loss or an optimizer as one reads it, `"Adam(learning_rate=0.01)"`: nothing in it differs between sessions."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_words(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_words, value))}]"
    if callable(getattr(value, "get_config", None)) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_settings(value))})"
    return str(getattr(value, "__name__", type(value).__name__))


def _settings(value: Any) -> list[str]:
    """The arguments a Keras object was made with that are not as by default, those that are plain values."""
    try:
        made_with = value.get_config()
    except Exception:  # of a user's own class: a profile comes without its settings
        return []
    defaults = inspect.signature(type(value)).parameters
    return [
        f"{name}={each:.6g}" if isinstance(each, float) else f"{name}={each}"
        for name, each in made_with.items()
        if name != "name" and name in defaults and isinstance(each, bool | int | float | str)
        if not _same(each, defaults[name].default)
    ]


def _same(one: Any, default: Any) -> bool:
    """Whether a value is the default, though it went through a float32."""
    if isinstance(one, float) and isinstance(default, int | float):
        return f"{one:.6g}" == f"{default:.6g}"
    return bool(one == default)


__all__ = ["asked", "with_asked"]
