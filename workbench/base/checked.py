"""Functions that refuse arguments of another kind than their annotations say, before any of their work is done."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np

from workbench.base.text import meant, short
from workbench.errors import CallError, InputError

F = TypeVar("F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """One kind of value: in words, and what reads a value as a plain one of it, with a `TypeError` for any other."""

    words: str
    read: Callable[[Any], Any]


def checked(function: F, name: str = "", *, held: int | None = None) -> F:
    """The function, with an `InputError` that names argument and value for one of another kind than its annotation.

    `name`: what its callers know it by, where that is not what it was defined as. `held`: how many of its first
    arguments no caller writes, as `self` of a method, which is seen without being told.
    Told apart are numbers, yes and no, texts, paths, choices (`Literal`), lists, mappings, functions, None, and classes
    that the function's module knows; of all else (`Any`) the function judges itself. NumPy's numbers come as Python's.
    """
    found: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if not found:
            signature = inspect.signature(function)
            found.update(signature=signature, kinds=_kinds(function, signature))
        bound = _bound(name or _name_of(function), found["signature"], args, named, held=held)
        for each, kind in found["kinds"].items():
            if each in bound.arguments:
                bound.arguments[each] = _read(each, kind, bound.arguments[each])
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def bound(function: F, todo: str = "", ways: Mapping[str, str] = MappingProxyType({})) -> F:
    """The function, with a `CallError` for a call with arguments that it does not have, or without some it needs.

    `ways`: what to do about names that other functions have. `todo`: about a name that is close to none of its own.
    """
    signature = inspect.signature(function)
    its = list(signature.parameters.values())
    held = its[:1] if its and its[0].name == "self" else []  # of a method no caller writes it
    signature = signature.replace(parameters=its[len(held) :])

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        way = next((ways[name] for name in named if name in ways and name not in signature.parameters), "")
        _bound(_name_of(function), signature, args[len(held) :], named, todo, way)
        return function(*args, **named)

    return call  # type: ignore[return-value]


def called(name: str, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """What the function gives; an `InputError` in which it has this name for arguments that it does not take."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that does not say what it takes
        return function(*args, **named)
    _bound(name, signature, args, named)
    return function(*args, **named)


def _name_of(function: Callable[..., Any]) -> str:
    """What callers know it by: of what makes an object, its class."""
    name: str = function.__name__
    return function.__qualname__.split(".")[-2] if name == "__init__" else name


def _bound(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    todo: str = "",
    way: str = "",
    *,
    held: int | None = None,
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **named)
    except TypeError as error:
        expected = f"arguments of {name}{_as_typed(signature, held)}"
        raise CallError(f"{name}: {error}", expected=expected, todo=way or _meant(signature, named) or todo) from None


def _as_typed(signature: inspect.Signature, held: int | None) -> inspect.Signature:
    """Names and defaults, as one types them: without their kinds, and without what a method is called on."""
    names = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    if held is None:
        held = int(bool(names) and names[0].name in ("self", "cls"))
    return signature.replace(parameters=names[held:], return_annotation=signature.empty)


def _meant(signature: inspect.Signature, named: Iterable[str]) -> str:
    """The argument that the first unknown name is close to, as a question; "" where there is none."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [each.name for each in signature.parameters.values() if each.kind in by_name]
    unknown = [name for name in named if name not in signature.parameters]
    return meant(unknown[0], known) if unknown else ""


def as_annotated(name: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, read as the function's annotations say; `InputError` that names function and argument else."""
    kinds = _kinds(function, inspect.signature(function))
    return {key: _read(f"{name}: {key}", kinds[key], value) if key in kinds else value for key, value in given.items()}


def checked_methods(made: type[Any]) -> type[Any]:
    """A class whose public methods are `checked`."""
    for name, found in list(vars(made).items()):
        if name.startswith("_"):
            continue
        if isinstance(found, classmethod | staticmethod):
            setattr(made, name, type(found)(checked(found.__func__)))
        elif inspect.isfunction(found):
            setattr(made, name, checked(found))
    return made


def _read(name: str, kind: Kind, value: Any) -> Any:
    try:
        return kind.read(value)
    except TypeError as error:
        why = f", which {error}" if isinstance(error, _OtherArguments) else ""
        raise InputError(f"{name} is {short(value)}{why}", expected=kind.words) from None


class _OtherArguments(TypeError):
    """A function cannot be called with as many arguments as it will be; its text says what it takes."""


def heard(name: str, value: Any, words: str, count: int = 1) -> Any:
    """A function that will be called with so many arguments by place; an `InputError` for what cannot be, before it is.

    `words`: what it is expected to be. A function that does not say what it takes, as some of C, is believed.
    """
    return _read(name, Kind(words, functools.partial(_function, count)), value)


def _kinds(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, Kind]:
    """The kinds of a function's arguments that have one; of `*several`, for each of them."""
    found: dict[str, Kind] = {}
    known = getattr(inspect.unwrap(function), "__globals__", {})
    for each in signature.parameters.values():
        if isinstance(each.annotation, str) and each.kind is not each.VAR_KEYWORD:
            kind = _kind(ast.parse(each.annotation, mode="eval").body, known)
            if kind is not None:
                found[each.name] = _listed(kind) if each.kind is each.VAR_POSITIONAL else kind
    return found


def _kind(node: ast.expr, known: Mapping[str, Any]) -> Kind | None:
    """What an annotation says; None where it says nothing that can be asked of a value."""
    if isinstance(node, ast.BinOp):
        return _any_of([_kind(each, known) for each in (node.left, node.right)])
    if isinstance(node, ast.Constant) and node.value is None:
        return _NOTHING
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _of_several(node.value.id, node.slice, known)
    if isinstance(node, ast.Name):
        if node.id in _PLAIN:
            return _PLAIN[node.id]
        named = known.get(node.id)
        if isinstance(named, type) and named is not Any and not getattr(named, "_is_protocol", False):
            return Kind(_with_article(named.__name__), functools.partial(_instance, named))
        if get_origin(named) is Literal:
            return _choice(get_args(named))
        return _function_of(get_args(named)[0]) if get_origin(named) is Callable else None
    return None


def _with_article(name: str) -> str:
    return f"{'an' if name.startswith(('A', 'E', 'I', 'O')) else 'a'} {name}"


def _of_several(name: str, inside: ast.expr, known: Mapping[str, Any]) -> Kind | None:
    name = getattr(known.get(name), "__name__", None) or name  # what a module imports under another name
    if name == "Literal":
        return _choice(ast.literal_eval(inside if isinstance(inside, ast.Tuple) else ast.Tuple([inside], ast.Load())))
    if name == "Callable":
        taken = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else None
        return _function_of(taken.elts if isinstance(taken, ast.List) else None)
    if name in ("Mapping", "dict"):
        return Kind("a mapping", functools.partial(_instance, Mapping))
    if name in ("Sequence", "list"):
        return _listed(_kind(inside, known) or _ANYTHING)
    if name == "Iterable":
        return _listed(_kind(inside, known) or _ANYTHING, Iterable)
    return None


def _any_of(kinds: Sequence[Kind | None]) -> Kind | None:
    asked = [each for each in kinds if each is not None]
    if len(asked) < len(kinds):
        return None
    if _PLAIN["Path"] in asked:  # a path as text is a path
        asked.remove(_PLAIN["str"])

    def read(value: Any) -> Any:
        why = TypeError()
        for each in asked:
            try:
                return each.read(value)
            except TypeError as error:
                why = error if isinstance(error, _OtherArguments) else why
        raise why

    return Kind(" or ".join(dict.fromkeys(each.words for each in asked)), read)


def _listed(kind: Kind, of: Any = Sequence | np.ndarray | set | frozenset) -> Kind:
    def read(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, of):
            raise TypeError
        return tuple(kind.read(each) for each in value)

    return Kind(f"a list, each {kind.words}" if kind is not _ANYTHING else "a list", read)


def _choice(choices: tuple[Any, ...]) -> Kind:
    def read(value: Any) -> Any:
        if not isinstance(value, str | int) or value not in choices:
            raise TypeError
        return value

    return Kind(f"one of: {', '.join(map(repr, choices))}", read)


def _instance(wanted: type[Any], value: Any) -> Any:
    if not isinstance(value, wanted):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> Any:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError
    return value.item() if isinstance(value, np.generic) else value


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _path(value: Any) -> Any:
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise TypeError
    return value


def _function_of(taken: Any) -> Kind:
    """A function; of as many arguments as `taken` lists, where it is a list."""
    if not isinstance(taken, list):
        return Kind("a function", functools.partial(_function, None))
    count = len(taken)
    words = f"a function of {_NUMBERS.get(count, count)} argument{'' if count == 1 else 's'}"
    return Kind(words, functools.partial(_function, count))


_NUMBERS: Mapping[int, str] = {0: "no", 1: "one", 2: "two", 3: "three"}


def _function(count: int | None, value: Any) -> Any:
    if not callable(value):
        raise TypeError
    try:
        signature = None if count is None else inspect.signature(value)
    except (TypeError, ValueError):  # one that does not say what it takes
        return value
    if signature is not None:
        try:
            signature.bind(*range(count or 0))
        except TypeError:
            raise _OtherArguments(f"takes {_as_typed(signature, 0)}") from None
    return value


def _none(value: Any) -> None:
    if value is not None:
        raise TypeError


_NOTHING = Kind("None", _none)
_ANYTHING = Kind("anything", lambda value: value)
_PLAIN: Mapping[str, Kind] = {
    "int": Kind("a whole number", _whole),
    "float": Kind("a number", _number),
    "bool": Kind("True or False", _yes_or_no),
    "str": Kind("text", functools.partial(_instance, str)),
    "Path": Kind("a path", _path),
}

__all__ = ["as_annotated", "bound", "called", "checked", "checked_methods", "heard"]
