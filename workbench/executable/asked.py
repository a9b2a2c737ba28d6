"""What of a compile's arguments no option holds, in words: they are laid over a profile, which is kept without them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.text import shown
from workbench.base.units import some_text
from workbench.profiler.profile import Profile, with_meta

if TYPE_CHECKING:
    from workbench.executable.request import Request

TOLD = ("precision", "loss", "optimizer", "stages", "trip_counts")
OF_A_MODEL = ("loss", "optimizer")
FEW = 8  # things that an object holds together and are told each; numbers of an array, or else its shape
DEEPEST = 2
_UNKNOWN = object()


def asked(request: Request) -> dict[str, str]:
    """By name, what was given for each argument of `TOLD`, or to the `compile` of a model that trains, and the sizes of
    a ready model that are not as by default; nothing of those that were not given."""
    given = {name: getattr(request, name) for name in TOLD} | {"sizes": _sizes(request.source)}
    if getattr(request.source, "compiled", False) and request.mode != "inference":
        given |= {name: getattr(request.source, name, None) for name in OF_A_MODEL if given[name] is None}
    return {name: shown(_words(value)) for name, value in given.items() if value is not None}


def with_asked(profile: Profile, request: Request) -> Profile:
    """The profile with what was `asked` in its meta."""
    return with_meta(profile, asked=asked(request))


def _sizes(source: Any) -> Mapping[str, int] | None:
    if not isinstance(getattr(source, "size", None), tuple):
        return None
    from workbench.engine.frontends.ready import ReadyModel, ready  # whoever has such a model has loaded Keras

    if not isinstance(source, ReadyModel):
        return None
    usual = dict(ready(source.name).size)
    return {name: size for name, size in source.size if usual.get(name) != size} or None


def _words(value: Any, depth: int = 0) -> str:
    """A loss or an optimizer as one reads it, `"Adam(learning_rate=0.01)"`: nothing in it differs between sessions.

    `depth`: how many objects it is held by. Of what is held deeper than `DEEPEST` the class is said.
    """
    if value is None or isinstance(value, str | bool | int):
        return str(value)
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_words(each, depth)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple):
        parts = [_words(each, depth) for each in value]
        if not depth and len(parts) > FEW:  # as the stages of many layers: what comes several times in a row, once
            several = ((word, len(list(same))) for word, same in groupby(parts))
            parts = [f"{word} × {count}" if count > 1 else word for word, count in several]
        return f"[{some_text(parts, FEW if depth else len(parts))}]"
    if callable(getattr(value, "__array__", None)):
        return _array(np.asarray(value))
    return _object(value, depth)


def _object(value: Any, depth: int) -> str:
    """A function by its name, anything else by its class and settings."""
    if isinstance(value, functools.partial):
        given = [_words(each, depth + 1) for each in value.args]
        given += [f"{name}={_words(each, depth + 1)}" for name, each in value.keywords.items()]
        return f"{_words(value.func, depth)}({', '.join(given)})"
    name = getattr(value, "__name__", None)
    if name == "<lambda>":
        return f"the lambda of line {value.__code__.co_firstlineno}"
    if name:
        return str(name)
    return f"{type(value).__name__}({', '.join(_settings(value, depth + 1) if depth < DEEPEST else ())})"


def _number(value: float) -> str:
    """The shortest text of a number, whether or not it went through a float32."""
    single = np.float32(value)
    return str(single if float(single) == value else value).removesuffix(".0")


def _array(value: np.ndarray[Any, Any]) -> str:
    return _words(value.tolist()) if value.size <= FEW else f"{value.dtype} of shape {value.shape}"


def _settings(value: Any, depth: int) -> Iterator[str]:
    """The arguments an object was made with that are not as by default, as far as it says or holds them."""
    defaults, held = _defaults(type(value)), getattr(value, "__dict__", {})
    try:
        said = value.get_config()
    except Exception:  # of a user's own class, or without one: what it holds says it
        said = {}
    own = inspect.signature(type(value)).parameters if defaults else ()
    for name, usual in defaults.items():
        each = _of(name, said, held if name in own else {})
        words = _words(usual if each is _UNKNOWN else each, depth)
        if name not in ("name", "dtype") and words != _words(usual, depth):
            yield f"{name}={words}"


def _of(name: str, said: Mapping[str, Any], held: Mapping[str, Any]) -> Any:
    """An argument: as an object says it, else from an attribute of its name or from arguments that it holds together,
    as a loss of Keras holds those of its function. Of another object, which it says in text, the object itself."""
    together = [each for each in held.values() if isinstance(each, Mapping)]
    known = [each[name] for each in (said, held, *together) if name in each]
    known += [held[f"_{name}"]] if f"_{name}" in held else []
    plain = [each for each in known if not isinstance(each, Mapping)]
    return (plain or known or [_UNKNOWN])[0]


def _defaults(kind: Any) -> dict[str, Any]:
    """The arguments a class takes, its bases' too where it hands on what it does not name."""
    found: dict[str, Any] = {}
    for each in getattr(kind, "__mro__", ())[:-1]:
        if "__init__" not in vars(each):
            continue
        parameters = list(inspect.signature(each.__init__).parameters.values())[1:]
        named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        found = {one.name: one.default for one in named if one.name not in found} | found
        if not any(one.kind == one.VAR_KEYWORD for one in parameters):
            break
    return found


__all__ = ["asked", "with_asked"]
