"""Attributes of a configuration: their types as the API reference writes them, their metadata and documentation."""

from __future__ import annotations

import inspect
import logging
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args, get_origin

from workbench.errors import OptionError, OptionValueError, WorkbenchError

LOGGER = logging.getLogger("workbench.ipu.config")
_UNDESCRIBED = "No description provided."


class OptionTypeError(WorkbenchError, TypeError):
    """An option assigned a value of a type it does not take."""


class UnknownOptionError(OptionValueError, AttributeError):
    """A name that is no option here."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.args = (what,)  # it may end in a question


def type_text(annotation: Any) -> str:
    """The type as text: `int | list[int]` is `"typing.Union[int, typing.List[int]]"`.

    >>> type_text(tuple[int, ...])
    'typing.Tuple[int, ...]'
    """
    if annotation is Ellipsis:
        return "..."
    origin = get_origin(annotation)
    if origin is None:
        return str(annotation.__name__)
    names: dict[Any, str] = {list: "typing.List", tuple: "typing.Tuple"}
    name = names.get(origin, "typing.Union")
    return f"{name}[{', '.join(type_text(each) for each in get_args(annotation))}]"


def matches(value: Any, annotation: Any) -> bool:
    """Whether a value has exactly this type: True is no int, and 1 no float."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return type(value) is annotation
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, each) for each in arguments)
    if type(value) is not origin:
        return False
    if origin is list:
        return all(matches(each, arguments[0]) for each in value)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(matches(each, arguments[0]) for each in value)
    return len(value) == len(arguments) and all(map(matches, value, arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What a configuration is made of: an option, or a category when `default` is None.

    `default` makes a fresh default; `annotation` is the type values must have, by default that of the default.
    """

    name: str
    default: Callable[[], Any] | None = None
    annotation: Any = None
    doc: str = ""
    deprecated: str = ""

    def __post_init__(self) -> None:
        if not all(part.isidentifier() for part in self.name.split(".")):
            raise OptionError(
                f"an attribute is declared as {self.name!r}, which no assignment can name",
                expected="names joined by dots, such as io_tiles.num_io_tiles",
            )
        _check_annotation(self.name, self.annotation)
        members = get_args(self.annotation)
        if int in members and any(isinstance(each, type) and issubclass(each, Enum) for each in members):
            raise OptionValueError(
                f"{self.name} takes an integer or an enumeration",
                expected="one of the two: a saved member is a number, and could not be told from an integer",
            )


def _check_annotation(name: str, annotation: Any) -> None:
    """Types that values are checked against: classes, and lists, tuples and unions of them."""
    if (
        annotation is None
        or annotation is Ellipsis
        or (isinstance(annotation, type) and get_origin(annotation) is None)
    ):
        return
    if get_origin(annotation) not in (list, tuple, typing.Union, types.UnionType):
        unsupported = OptionValueError if get_origin(annotation) is None else OptionError
        raise unsupported(
            f"{name} is declared with the type {annotation}", expected="a class, or a list, tuple or union of classes"
        )
    for each in get_args(annotation):
        _check_annotation(name, each)


class AttributeMetadata:
    """What is known of an option or a category: name, type, default, deprecation, and its text as `__doc__`."""

    def __init__(
        self,
        name: str,
        doc: str = "",
        depth: int = 0,
        default: Any = None,
        deprecated_msg: str | None = None,
        attr_type: str | None = None,
        check_type_fn: Callable[[Any], bool] = lambda value: True,
    ) -> None:
        self.__doc__ = inspect.cleandoc(doc) or _UNDESCRIBED
        self._name = name
        self._depth = depth
        self._default = default
        self._deprecated_msg = deprecated_msg
        self._type = attr_type
        self._check = check_type_fn

    @property
    def name(self) -> str:
        """The full name, from the root of the configuration."""
        return self._name

    @property
    def type(self) -> str | None:
        """The type as text; None for a category."""
        return self._type

    @property
    def default(self) -> Any:
        """The default; None for a category."""
        return self._default

    @property
    def deprecated(self) -> bool:
        """Whether it is deprecated."""
        return self._deprecated_msg is not None

    @property
    def deprecated_msg(self) -> str | None:
        """What to use instead; None when it is not deprecated."""
        return self._deprecated_msg

    def check_type(self, value: Any) -> bool:
        """True for a value of the right type; a `TypeError` for any other."""
        if not self._check(value):
            raise OptionTypeError(
                f"{self.name} was set to {value!r}, of type {type(value).__name__}, but it must be of type {self.type}"
            )
        return True

    def warn_if_deprecated(self) -> None:
        """Log a warning when this is deprecated."""
        if self.deprecated:
            LOGGER.warning("%s has been deprecated: %s", self.name, self.deprecated_msg)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type or 'category'}>"


def metadata_of(attribute: Attribute, inherited: str = "") -> AttributeMetadata:
    """The metadata of an attribute; `inherited` is the deprecation of a category above it."""
    default = attribute.default() if attribute.default is not None else None
    annotation = type(default) if attribute.annotation is None else attribute.annotation
    category = attribute.default is None
    return AttributeMetadata(
        attribute.name,
        doc=attribute.doc,
        depth=attribute.name.count(".") + 1,
        default=default,
        deprecated_msg=attribute.deprecated or inherited or None,
        attr_type=None if category else type_text(annotation),
        check_type_fn=lambda value: matches(value, annotation),
    )


def rst(metadata: AttributeMetadata) -> str:
    """The entry of one attribute in Sphinx's form, indented by its depth."""
    lines = [f".. _{metadata.name}:", f".. py:attribute:: {metadata.name}"]
    if metadata.type is not None:
        shown = f'"{metadata.default}"' if isinstance(metadata.default, str) else metadata.default
        lines += [f"   :type: {metadata.type}", f"   :value: {shown}"]
    lines.append("")
    if metadata.deprecated:
        lines += ["   .. note::", f"      DEPRECATED: {metadata.deprecated_msg}", ""]
    lines += [f"   {line}" for line in (metadata.__doc__ or "").splitlines()]
    return "\n".join(f"{'   ' * metadata._depth}{line}".rstrip() for line in lines) + "\n"
