"""A configuration as nested attributes: assignment is checked, names are suggested, and all of it can be saved."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from workbench.base.text import short
from workbench.errors import KindError, OptionError, OptionValueError
from workbench.ipu.config._attributes import (
    LOGGER,
    Attribute,
    AttributeMetadata,
    OptionTypeError,
    UnknownOptionError,
    metadata_of,
    rst,
)

Self = TypeVar("Self", bound="ConfigBase")


class ConfigBase:
    """A category of options, or the root of all.

    Made from attributes with dotted names, in the order they are shown; a category comes before what is in it.
    """

    __slots__ = ("_categories", "_metadata", "_name", "_values")

    _categories: dict[str, ConfigBase]
    _metadata: dict[str, AttributeMetadata]
    _name: str
    _values: dict[str, Any]

    def __init__(self, attributes: tuple[Attribute, ...], name: str = "", deprecated: str = "") -> None:
        for slot, value in (("_name", name), ("_values", {}), ("_metadata", {}), ("_categories", {})):
            object.__setattr__(self, slot, value)
        start = f"{name}." if name else ""
        for attribute in attributes:
            last = attribute.name.removeprefix(start)
            if not attribute.name.startswith(start) or "." in last:
                continue
            self._metadata[last] = metadata_of(attribute, deprecated)
            if attribute.default is None:
                self._categories[last] = ConfigBase(attributes, attribute.name, attribute.deprecated or deprecated)
            else:
                self._values[last] = attribute.default()

    def __getattr__(self, name: str) -> Any:
        if name in ConfigBase.__slots__:
            raise AttributeError(name)
        if name in self._categories:
            return self._categories[name]
        if name in self._values:
            return self._values[name]
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._metadata:
            raise self._unknown(name)
        metadata = self._metadata[name]
        metadata.warn_if_deprecated()
        if name in self._categories:
            raise OptionError(
                f"{metadata.name} is a category and cannot be assigned to",
                expected=f"one of its options: {', '.join(self._categories[name]._metadata)}",
            )
        metadata.check_type(value)
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        raise OptionValueError(f"{name!r} cannot be deleted", todo="assign its default instead")

    def _unknown(self, name: str) -> UnknownOptionError:
        close = difflib.get_close_matches(name, self._metadata, n=1)
        hint = f"Did you mean '{self._metadata[close[0]].name}'?" if close else ""
        return UnknownOptionError(f"'{name}' is not a valid attribute of this config. {hint}".strip())

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._metadata])

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        for slot in ("_name", "_metadata"):
            object.__setattr__(new, slot, getattr(self, slot))
        for slot in ("_values", "_categories"):
            object.__setattr__(new, slot, copy.deepcopy(getattr(self, slot), memo))
        return new

    def __copy__(self: Self) -> Self:
        return copy.deepcopy(self)

    def __reduce__(self) -> Any:
        """A category is a part of its configuration, and what checks its options holds functions."""
        raise KindError(
            f"{self._name or 'a category'} of a configuration cannot be pickled",
            expected="the whole IPUConfig, or its values",
            todo="pickle the IPUConfig, or keep what to_dict() or to_json() gives",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigBase) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def get_attribute_metadata(self, attr: str) -> AttributeMetadata:
        """What is known of the option or category `attr`, named from this category; a `ValueError` for any other."""
        if not isinstance(attr, str):
            raise OptionTypeError(f"attr is {short(attr)}", expected="the name of an option or category, as text")
        owner: ConfigBase = self
        *path, last = attr.split(".")
        try:
            for part in path:
                if part in owner._values:
                    raise UnknownOptionError(f"'{part}' is an option and has none inside")
                if part not in owner._categories:  # nothing else that an object has is an option
                    raise owner._unknown(part)
                owner = owner._categories[part]
            if last not in owner._metadata:
                raise owner._unknown(last)
        except UnknownOptionError as error:
            raise OptionValueError(f"Could not get attribute metadata for '{attr}': {error}") from None
        return owner._metadata[last]

    def _each(self) -> Iterator[tuple[ConfigBase, str, AttributeMetadata]]:
        """Every option with the category that holds it, in the order of declaration."""
        for last, metadata in self._metadata.items():
            if last in self._categories:
                yield from self._categories[last]._each()
            else:
                yield self, last, metadata

    def _all_metadata(self) -> Iterator[AttributeMetadata]:
        for last, metadata in self._metadata.items():
            yield metadata
            if last in self._categories:
                yield from self._categories[last]._all_metadata()

    def _named_values(self) -> Iterator[tuple[str, Any]]:
        for owner, last, metadata in self._each():
            yield metadata.name, owner._values[last]

    def to_dict(self) -> dict[str, Any]:
        """Every value by its full name; an enumeration's member as its number."""
        return {metadata.name: _plain(owner._values[last]) for owner, last, metadata in self._each()}

    def from_dict(self, dct: Mapping[str, Any]) -> None:
        """Set values by full name. What is not named keeps its value, with a warning.

        Unknown names and values of a wrong type are an `OptionError` that lists them all; then nothing is set.
        """
        if not isinstance(dct, Mapping):
            raise OptionTypeError(f"dct is {short(dct)}", expected="a mapping of values by full name, as to_dict gives")
        known = {metadata.name: (owner, last, metadata) for owner, last, metadata in self._each()}
        wrong = [self._unknown_entry(name, list(known)) for name in dct if name not in known]
        found: list[tuple[ConfigBase, str, Any]] = []
        for name, (owner, last, metadata) in known.items():
            if name not in dct:
                LOGGER.warning("%s is not in the given configuration and keeps its value", name)
                continue
            try:
                value = _restore(dct[name], metadata)
                metadata.check_type(value)
                found.append((owner, last, value))
            except (OptionTypeError, OptionError) as error:
                wrong.append(error.what)
        if wrong:
            raise OptionValueError(
                f"{len(wrong)} wrong entries: {'; '.join(wrong)}" if len(wrong) > 1 else wrong[0],
                todo="correct them; nothing was changed",
            )
        for owner, last, value in found:
            if value != owner._values[last]:
                setattr(owner, last, copy.deepcopy(value))

    def _unknown_entry(self, name: str, known: list[str]) -> str:
        close = difflib.get_close_matches(str(name), known, n=1)
        return f"there is no option {name!r}" + (f", did you mean {close[0]!r}?" if close else "")

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict())

    def from_json(self, json_cfg: str) -> None:
        """`from_dict` of JSON."""
        if not isinstance(json_cfg, str | bytes | bytearray):
            raise OptionTypeError(f"json_cfg is {short(json_cfg)}", expected="text, as to_json gives")
        try:
            found = json.loads(json_cfg)
        except (ValueError, RecursionError) as error:
            raise OptionValueError(f"this is not JSON: {error}", expected="what to_json gives") from None
        if not isinstance(found, dict):
            what = f"the JSON holds a {type(found).__name__}"
            raise OptionValueError(what, expected="a table of options by full name")
        self.from_dict(found)

    def __str__(self) -> str:
        lines = (f"{metadata.name} = {_shown(owner._values[last])}" for owner, last, metadata in self._each())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}:", *(f"  {line}" for line in str(self).splitlines())])


def document(config: ConfigBase) -> str:
    """The text of every attribute, in Sphinx's form."""
    return "\n".join(rst(metadata) for metadata in config._all_metadata())


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else copy.deepcopy(value)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Enum) else repr(value)


def _restore(value: Any, metadata: AttributeMetadata) -> Any:
    """A saved value as it was: numbers and names of an enumeration become its member."""
    if not isinstance(metadata.default, Enum) or isinstance(value, Enum):
        return value
    kind = type(metadata.default)
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    if isinstance(value, int) and not isinstance(value, bool) and value in [each.value for each in kind]:
        return kind(value)
    members = ", ".join(f"{each.value} ({each.name})" for each in kind)
    raise OptionValueError(f"{metadata.name} was set to {value!r}, which is none of {members}")
