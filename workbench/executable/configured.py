"""Options as text: as they are typed, written, read and tried, from the declarations alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from workbench.base.text import short
from workbench.engine.options import OPTIONS, Option, Options
from workbench.errors import InputError, OptionValueError

MOST_TEXT = 100_000  # characters of a configuration that is read
MOST_TRIED = 4


def acting() -> list[Option]:
    """The options that change something here, by name."""
    return sorted(
        (
            each
            for each in OPTIONS.values()
            if each.kind != "dictionary" and each.effect != "recorded" and each.status == each.effect
        ),
        key=lambda each: each.name,
    )


def found(name: str) -> Option:
    """The declaration of an option that acts; an `OptionError` for any other name."""
    known = next((each for each in acting() if each.name == name), None)
    if known is None:
        raise OptionValueError(f"there is no option {short(name)} that acts")
    return known


def defaults() -> Options:
    """The options when nothing is set."""
    return Options()


def text_of(value: Any) -> str:
    """A value as it is typed: texts as they are, several with commas between, others as in JSON."""
    if isinstance(value, tuple):
        return ", ".join(map(text_of, value))
    if isinstance(value, Enum):
        return value.name
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def value_of(declared: Option, text: Any) -> Any:
    """The checked value of what was typed; empty text is the default."""
    if not isinstance(text, str | bool):
        raise OptionValueError(f"{declared.name} is {short(text)}", expected="a text, or yes or no")
    if isinstance(text, bool) or not text.strip():
        return declared.check(text) if isinstance(text, bool) else declared.default
    parts = [part.strip() for part in text.split(",") if part.strip()] if declared.many else [text.strip()]
    values = [_typed(declared, part) for part in parts]
    return declared.check(values if declared.many else values[0])


def _typed(declared: Option, text: str) -> Any:
    if declared.type not in (int, float, bool):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # what it is not, `check` says


def neighbours(declared: Option, value: Any) -> list[Any]:
    """Values beside one: the other of a switch, others of a choice, half and more of a number, inside its bounds."""
    if declared.type is bool:
        return [not value]
    if declared.choices and not declared.many:
        return [each for each in declared.choices if each != value][:MOST_TRIED]
    if isinstance(value, tuple) or declared.type not in (int, float) or value is None:
        return []
    low = float("-inf") if declared.minimum is None else declared.minimum
    high = float("inf") if declared.maximum is None else declared.maximum
    if declared.type is float:
        around = [round(value * factor, 6) for factor in (0.25, 0.5, 1.5)]
    else:
        around = [value // 2, value * 2, value * 4] if value else [32, 1024]
    return [each for each in dict.fromkeys(around) if low <= each <= high and each != value]


def as_toml(options: Options) -> str:
    """The options that are not at their default as TOML, which `read` takes, and of attributes the command line too."""
    lines = []
    for name, value in _by_attribute(options).items():
        keys = value.items() if isinstance(value, dict) else ()
        inside = ", ".join(f"{json.dumps(key)} = {json.dumps(item)}" for key, item in keys)
        lines.append(f"{name} = {{ {inside} }}\n" if inside else f"{name} = {json.dumps(value)}\n")
    return "".join(lines)


def as_json(options: Options) -> str:
    """The same as JSON."""
    return json.dumps(_by_attribute(options), indent=2) + "\n"


def _by_attribute(options: Options) -> dict[str, Any]:
    """Values by name, keys of a dictionary of options in one."""
    found: dict[str, Any] = {}
    for name, value in options.changed:
        plain = list(value) if isinstance(value, tuple) else value
        if holder := holder_of(name):
            found.setdefault(holder, {})[name.removeprefix(f"{holder}.")] = plain
        else:
            found[name] = plain
    return found


def holder_of(name: str) -> str:
    """The dictionary of options that a key belongs to; "" for an attribute."""
    holders = (each.name for each in OPTIONS.values() if each.kind == "dictionary")
    return next((each for each in holders if name.startswith(f"{each}.")), "")


WRITERS: Mapping[str, Callable[[Options], str]] = {"toml": as_toml, "json": as_json}


def read(text: str) -> dict[str, Any]:
    """Options by name out of JSON or TOML, nested or with dots; `InputError` where it is neither or no table."""
    if len(text) > MOST_TEXT:
        raise InputError(f"the configuration has {len(text):,} characters", expected=f"at most {MOST_TEXT:,}")
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is neither JSON nor TOML: {error}", expected="a table of options, as the panel writes it"
        ) from None
    values = dict(_flat(found, ""))
    Options().with_values(values)
    return values


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        dotted = prefix + name
        if isinstance(value, dict) and (dotted not in OPTIONS or OPTIONS.get(dotted).kind == "dictionary"):
            yield from _flat(value, f"{dotted}.")
        else:
            yield dotted, value
