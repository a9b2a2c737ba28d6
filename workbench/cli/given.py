"""What is given on the command line: a model by name, a file of options, an axis of a grid."""

from __future__ import annotations

import functools
import importlib
import json
import sys
import tomllib
import traceback
from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path
from typing import Any

from workbench.base.text import meant, short
from workbench.errors import InputError, OptionValueError


class ModelError(InputError):
    """The module of a model raised something of its own while it was imported; `trace` is where, as text."""

    def __init__(self, what: str, trace: str) -> None:
        super().__init__(what)
        self.trace = trace


def load_source(text: str) -> Any:
    """`MODULE:NAME` is that object of an importable module, the current folder included; else a ready model's name."""
    if ":" not in text:
        return text
    module_name, _, name = text.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), name]):
        raise InputError(
            f"cannot read the model {text!r}", expected="MODULE:NAME as in mymodels:build, or package.module:NAME"
        )
    module = imported(module_name)
    if not hasattr(module, name):
        public = [each for each in vars(module) if not each.startswith("_")]
        expected = f"one of: {', '.join(public) or 'nothing'}"
        raise InputError(f"module {module_name!r} has no {name!r}", expected=expected, todo=meant(name, public))
    return getattr(module, name)


def imported(module_name: str) -> Any:
    """A module, looked for in the current folder first; what it raises itself is a `ModelError`."""
    try:
        here = str(Path.cwd())
    except OSError:
        raise InputError("the current folder is gone", todo="change to a folder that is there") from None
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (module_name + ".").startswith(missing + "."):
            todo = f"leave .py out: {module_name.removesuffix('.py')}:NAME" if module_name.endswith(".py") else ""
            raise InputError(
                f"no module {module_name!r}", expected="MODULE:NAME, importable from here", todo=todo
            ) from None
        trace = traceback.format_exc()
        raise ModelError(f"module {module_name!r} raised {type(error).__name__}: {error}", trace) from error


MOST_BYTES = 1 << 20  # of a file of options; all there are fit into a few thousand


def read_options(path: Path) -> dict[str, Any]:
    """The options in a JSON or TOML file, nested or under dotted names."""
    readers: dict[str, Callable[[str], Any]] = {".json": _read_json, ".toml": tomllib.loads}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"cannot read {str(path)!r} as a configuration", expected="a .json or .toml file")
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ValueError("it is no file")
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES} bytes")
        options = reader(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(options, dict):
        raise InputError(f"{str(path)!r} holds {short(options)}", expected="a table of options")
    return options


def _read_json(text: str) -> Any:
    """What is written in JSON, in which a name stands once, as in TOML."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise ValueError(f"{name!r} is given twice")
            found[name] = value
        return found

    return json.loads(text, object_pairs_hook=table)


def assign_options(config: Any, options: dict[str, Any]) -> None:
    """Set each option on the configuration, declared ones only and once; a table under a category is descended into."""
    _assign(config, options, "", set())


def _assign(config: Any, options: dict[str, Any], prefix: str, known: set[str]) -> None:
    for name, value in options.items():
        dotted = prefix + name
        try:
            config.get_attribute_metadata(dotted)
        except OptionValueError as error:
            raise OptionValueError(f"no option {dotted!r}", expected=f"an IPUConfig option; {error}") from None
        *path, last = dotted.split(".")
        owner = functools.reduce(getattr, path, config)
        current = getattr(owner, last)
        if hasattr(current, "get_attribute_metadata") and isinstance(value, dict):
            _assign(config, value, f"{dotted}.", known)
            continue
        if dotted in known:
            raise OptionValueError(f"{dotted} is given twice", todo="give it once, under its dotted name or in a table")
        known.add(dotted)
        new = as_option(dotted, value, current)
        if type(new) is not type(current) or new != current:  # a saved default of a deprecated option warns of nothing
            setattr(owner, last, new)


def as_option(dotted: str, value: Any, current: Any) -> Any:
    """What a file says of an option, as `IPUConfig` takes it; members of an enumeration by name, or by number."""
    if not isinstance(current, Enum) or isinstance(value, bool):
        return value
    kind = type(current)
    for each in kind:
        if value in (each.name, each.value):
            return each
    members = ", ".join(f"{each.name!r} ({each.value})" for each in kind)
    raise OptionValueError(f"{dotted} was set to {value!r}", expected=f"one of: {members}")


def grid(axes: list[str]) -> dict[str, list[Any]]:
    """The grid that axes span; each has a name of its own."""
    found: dict[str, list[Any]] = {}
    for text in axes:
        name, values = axis(text)
        if name in found:
            raise InputError(f"the axis {name!r} is given twice", todo="give its values in one --axis")
        found[name] = values
    return found


def axis(text: str) -> tuple[str, list[Any]]:
    """Read `NAME=VALUE,VALUE`; values are JSON where they can be, else texts; a list in brackets is JSON as a whole."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise InputError(f"cannot read the axis {text!r}", expected="NAME=VALUE,VALUE, as in batch_size=1,2,4")
    if values.lstrip().startswith("["):
        found = value_of(values)
        return name.strip(), found if isinstance(found, list) else [found]
    return name.strip(), [value_of(each) for each in values.split(",")]


def settings(texts: list[str], named: Collection[str]) -> dict[str, Any]:
    """What `--set NAME=VALUE` gives, each name once and none of those that are `named` otherwise."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise InputError(f"cannot read {text!r} behind --set", expected="NAME=VALUE, as in replicas=2")
        if name in _ELSEWHERE:
            raise InputError(f"--set cannot give {name}", todo=_ELSEWHERE[name])
        if name in found or name in named:
            raise InputError(f"{name} is given twice", todo="give it once")
        found[name] = value_of(value)
    return found


_ELSEWHERE = {
    "config": "write --config FILE",
    "inputs": "name a function without arguments that builds the model, with shapes of its own, or use wb.compile",
    "progress": "leave it out",
    "source": "name the model as the command's own argument",
}


def sized(source: Any, found: dict[str, Any], known: Collection[str]) -> Any:
    """The source in the sizes among what was set, which are taken out: those of a ready model, by name.

    Errors: `InputError` for a name that is neither a size nor one of the `known` arguments.
    """
    sizes: Collection[str] = ()
    if isinstance(source, str):
        from workbench.engine.frontends.ready import ready

        sizes = [name for name, _ in ready(source).size]
    for name in sorted(found.keys() - {*known, *sizes}):
        of_model = f", or a size of {source}: {', '.join(sizes)}" if sizes else ""
        raise InputError(
            f"--set {name} is no argument of wb.compile",
            expected=f"one of: {', '.join(known)}{of_model}",
            todo=meant(name, [*known, *sizes]),
        )
    chosen = {name: found.pop(name) for name in list(found) if name not in known}
    return ready(source, **chosen) if chosen else source


def value_of(text: str) -> Any:
    """The JSON value, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
