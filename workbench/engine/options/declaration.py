"""What an option is: one declaration with its default, type, effect and reader, and the frozen values of a compile."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from workbench.base.registry import Registry
from workbench.base.text import short
from workbench.engine.cost import Plain, freeze
from workbench.errors import OptionValueError

Effect = Literal["modelled", "numeric", "recorded"]
Kind = Literal["attribute", "dictionary", "key", "argument"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option.

    `kind`: an attribute of `IPUConfig`; one that is a dictionary with declared keys; such a key; or an argument of
    `wb.compile`. `effect`: modelled options change memory or time, numeric ones change results or stop the run,
    recorded ones are kept and shown with the `reason` why nothing here can change. `read_by` names the modules of the
    package that read it; an option that only the module named `planned` will read has no effect yet, and `status`
    says so. `choices` lists the allowed values, `minimum` and `maximum` bound a number. `many`: lists and tuples of
    values are allowed too. `type` is an `Enum` for options given as members: a compile sees their names.
    """

    name: str
    default: Plain
    type: type
    doc: str
    kind: Kind = "attribute"
    effect: Effect = "modelled"
    read_by: tuple[str, ...] = ()
    planned: str = ""
    choices: tuple[Plain, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    reason: str = ""
    many: bool = False
    deprecated: str = ""
    source: str = ""
    form_label: str = ""  # shown in the app's form when set, at this place from 1 on
    form_place: int = 0
    form_zero: str = ""  # what a 0 stands for in the form, where it is no number of them

    @property
    def status(self) -> str:
        """`effect`, or `"modelled, not yet read"` and the like while nothing reads the option."""
        if self.kind == "dictionary":
            return "by key"
        return f"{self.effect}, not yet read" if self.planned and not self.read_by else self.effect

    @property
    def annotation(self) -> Any:
        """The type an `IPUConfig` accepts for this option."""
        plain = self.type
        return plain | list[plain] | tuple[plain, ...] if self.many else plain  # type: ignore[valid-type]

    @property
    def range_text(self) -> str:
        """The bounds of a number in words; a whole one digit for digit."""
        low = f"at least {_digits(self.minimum)}" if self.minimum is not None else ""
        high = f"at most {_digits(self.maximum)}" if self.maximum is not None else ""
        return " and ".join(part for part in (low, high) if part)

    def initial(self) -> Any:
        """The default as an `IPUConfig` shows it: a fresh list or dictionary, an enumeration member, or a value."""
        if self.many:
            return []
        if self.type is dict:
            return {}
        return self.type[str(self.default)] if issubclass(self.type, Enum) else self.default

    def check(self, value: Any) -> Plain:
        """The value in its frozen form, or an `OptionError` naming the option."""
        if self.many and isinstance(value, list | tuple):
            items = tuple(self._check_one(item) for item in value)
            return items if len(items) > 1 else items[0] if items else self.default
        if value is None and self.default is None:
            return None
        return self._check_one(value)

    def _check_one(self, value: Any) -> Plain:
        if getattr(value, "ndim", 0):
            raise OptionValueError(f"{self.name} is {short(value)}", expected=_WANTED.get(self.type, "one value"))
        value = self._convert(value)
        if self.choices and value not in self.choices:
            raise OptionValueError(
                f"{self.name} is {value!r}", expected=f"one of: {', '.join(map(repr, self.choices))}", todo=self._todo()
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_bounds(value)
        return freeze(value)

    def _convert(self, value: Any) -> Any:
        """A value of the option's own type; text of a PopLibs option is read as PopLibs reads it."""
        if issubclass(self.type, Enum):
            return value.name if isinstance(value, self.type) else value
        if self.type is dict:
            return _pairs(self.name, value)
        if self.kind == "key" and isinstance(value, str):
            value = _parse(self.name, value, self.type)
        if hasattr(value, "item") and not isinstance(value, str | bytes):
            value = value.item()
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            raise OptionValueError(f"{self.name} is {value!r}", expected=_WANTED.get(self.type, self.type.__name__))
        return value

    def _check_bounds(self, value: float) -> None:
        # Written so that a NaN, which is on no side of a bound, is outside of it.
        high_enough = self.minimum is None or value >= self.minimum
        low_enough = self.maximum is None or value <= self.maximum
        if not (high_enough and low_enough):
            raise OptionValueError(f"{self.name} is {value!r}", expected=self.range_text, todo=self._todo())

    def _todo(self) -> str:
        return f"leave {self.name.rpartition('.')[2]} out for the default, {self.default!r}"


def _digits(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


_WANTED = {bool: "True or False", int: "an integer", float: "a number", str: "text"}
_BOOLEANS = {"true": True, "false": False}


def _parse(name: str, text: str, wanted: type) -> Any:
    if wanted is bool:
        return _BOOLEANS.get(text.lower(), text)
    if wanted not in (int, float):
        return text
    try:
        return wanted(text)
    except ValueError:
        raise OptionValueError(f"{name} is {text!r}", expected=_WANTED[wanted]) from None


def _pairs(name: str, value: Any) -> tuple[tuple[str, Plain], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping | tuple) or not all(isinstance(key, str) for key, _ in pairs):
        raise OptionValueError(f"{name} is {value!r}", expected="a dictionary of texts")
    return tuple(sorted((key, freeze(item)) for key, item in pairs))


OPTIONS: Registry[Option] = Registry("option")
CATEGORIES: Registry[str] = Registry("category of options")


def option(name: str, default: Plain, type_: type, doc: str, **more: Any) -> Option:
    """Declare an option; an enumeration's choices are its members' names."""
    if issubclass(type_, Enum):
        more.setdefault("choices", tuple(type_.__members__))
    if isinstance(more.get("read_by"), str):
        more["read_by"] = (more["read_by"],)
    return OPTIONS.add(name, Option(name=name, default=default, type=type_, doc=doc, **more))


def category(name: str, doc: str) -> None:
    """Declare a category of `IPUConfig`."""
    CATEGORIES.add(name, doc)


def find_option(name: str) -> Option:
    """The declaration of an option, or an `OptionError` that suggests a name close to it."""
    if name in OPTIONS:
        return OPTIONS.get(name)
    prefix, _, last = name.rpartition(".")
    beside = [each for each in OPTIONS if each.rpartition(".")[0] == prefix]
    close = difflib.get_close_matches(name, list(OPTIONS), n=1) or [
        f"{prefix}.{each}" if prefix else each
        for each in difflib.get_close_matches(last, [each.rpartition(".")[2] for each in beside], n=1)
    ]
    hint = f"did you mean {close[0]!r}?" if close else "the names of options are those of IPUConfig"
    raise OptionValueError(f"there is no option {name!r}", todo=hint)


def _spread(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values by option, a dictionary with declared keys as one value for each key."""
    for name, value in values.items():
        if isinstance(value, Mapping) and find_option(name).kind == "dictionary":
            yield from ((f"{name}.{key}", item) for key, item in value.items())
        else:
            yield name, value


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one compile, frozen: values that differ from the default, by name."""

    changed: tuple[tuple[str, Plain], ...] = ()
    _values: Mapping[str, Plain] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_values", dict(self.changed))

    def __reduce__(self) -> tuple[Any, ...]:
        return Options, (self.changed,)

    def get(self, name: str) -> Any:
        """The value of an option."""
        return self._values[name] if name in self._values else find_option(name).default

    def several(self, name: str) -> tuple[Any, ...]:
        """The values of an option that has one for each IPU; () where one value is for all."""
        value = self.get(name)
        return value if isinstance(value, tuple) else ()

    def ask(self, question: Callable[[Options], Any]) -> Any:
        """What follows from options, as `question` finds it: where notes are taken, what it finds is noted and not
        what it reads. It is told from others by `==`, and so are answers.
        """
        return question(self)

    def with_values(self, values: Mapping[str, Any]) -> Options:
        """New options with some values set; each is checked. A `poplar_options` dictionary sets its keys."""
        merged = dict(self.changed)
        for name, value in _spread(values):
            declared = find_option(name)
            frozen = declared.check(value)
            if frozen == declared.default:
                merged.pop(name, None)
            else:
                merged[name] = frozen
        return Options(tuple(sorted(merged.items(), key=lambda pair: pair[0])))

    def ipus(self) -> int:
        """IPUs selected for the first device; 0 when none is selected and the program decides."""
        selected = self.get("auto_select_ipus")
        return int(selected[0] if isinstance(selected, tuple) else selected)

    def without_effect(self) -> tuple[tuple[str, str], ...]:
        """Options that were set and change nothing here, each with the reason."""
        set_here = [find_option(name) for name, _ in self.changed]
        return tuple(
            (each.name, each.reason or "nothing reads it yet: the program is as without it")
            for each in set_here
            if each.effect == "recorded" or each.status.endswith("not yet read")
        )

    def __iter__(self) -> Iterator[tuple[str, Plain]]:
        """Every option with its value; a dictionary of options key by key."""
        return iter((each.name, self.get(each.name)) for each in OPTIONS.values() if each.kind != "dictionary")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.changed) or "defaults"


class NotedOptions(Options):
    """Options that note what is read of them: by how it was asked for and the option's name, or the question, the
    value."""

    held: Options
    noted: dict[tuple[str, Any], Any]

    @classmethod
    def of(cls, options: Options, noted: dict[tuple[str, Any], Any] | None = None) -> NotedOptions:
        """The same options, noting."""
        made = cls(options.changed)
        object.__setattr__(made, "held", options)
        object.__setattr__(made, "noted", {} if noted is None else noted)
        return made

    def get(self, name: str) -> Any:
        """The value of an option, noted."""
        self.noted["get", name] = value = self.held.get(name)
        return value

    def several(self, name: str) -> tuple[Any, ...]:
        """The values for each IPU, noted; one value for all is not."""
        self.noted["several", name] = value = self.held.several(name)
        return value

    def ask(self, question: Callable[[Options], Any]) -> Any:
        """What follows from the options, noted; what it is read from is not."""
        known = self.noted.get(("ask", question))
        if known is None:
            known = self.noted["ask", question] = self.held.ask(question)
        return known


def answers_alike(options: Options, noted: Mapping[tuple[str, Any], Any]) -> bool:
    """Whether options say what others said, as `NotedOptions` noted it."""
    return all(getattr(options, asked)(name) == value for (asked, name), value in noted.items())


def options(values: Mapping[str, Any] | None = None) -> Options:
    """Options with these values and the defaults for the rest."""
    return Options().with_values(values or {})
