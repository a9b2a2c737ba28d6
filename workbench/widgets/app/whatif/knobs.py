"""What can be moved: batch size, precision, the memory proportions that plans read, and options that were changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.errors import InputError
from workbench.executable.configured import found, neighbours, text_of
from workbench.executable.reads import options_read
from workbench.executable.sources import made_by_hand
from workbench.widgets.app.form.run import MAX_BATCH, OWN, PRECISIONS

MOST_CURVE = 9  # points of a whole curve
EACH_OCTAVE = 4  # stops between a whole number and its double
REACH = 16  # a slider of whole numbers goes up to so many times the value it began with, and to 64 at least
PROPORTIONS = tuple(
    f"{group}.poplar_options.availableMemoryProportion" for group in ("matmuls", "convolutions", "slices")
)
PLANNED = "lowering and planning"  # a pass reads all proportions, whether anything is planned with them or not
Positions = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One thing that can be moved. `values` in order, `at` the place of the one that was compiled; a `menu` has no
    order that a slider would show."""

    name: str
    label: str
    doc: str
    kind: Literal["argument", "option"]
    values: tuple[Any, ...]
    at: int
    menu: bool = False

    def text(self, at: int) -> str:
        """A value as it is read."""
        value = self.values[at]
        return OWN if value is None and self.kind == "argument" else text_of(value) or "none"

    @property
    def curve(self) -> list[int]:
        """The places of a whole curve: all of them, or as many as are drawn, from end to end, with the one at hand."""
        last = len(self.values) - 1
        if last < MOST_CURVE:
            return list(range(last + 1))
        return sorted({self.at, *(round(last * part / (MOST_CURVE - 1)) for part in range(MOST_CURVE))})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Basis:
    """What moves begin from: the request of a compile, its profile, and where it read each option, None where that is
    not known. It holds no program: there may be one of every result that is kept."""

    request: Any
    profile: Any
    reads: Mapping[str, str] | None

    @classmethod
    def of(cls, executable: Any) -> Basis:
        """That of a compile."""
        return cls(request=executable.request, profile=executable.profile, reads=options_read(executable))


def knobs_of(basis: Basis) -> list[Knob]:
    """What can be moved of a compile: its arguments, the proportions it read, and the options that are changed."""
    request, reads = basis.request, basis.reads
    read = [name for name in PROPORTIONS if reads is None or reads.get(name) == PLANNED]
    changed = [name for name, _ in request.options.changed]
    options = [knob for name in dict.fromkeys([*read, *changed]) if (knob := option_knob(request, name)) is not None]
    return [*_arguments(request), *options]


def _arguments(request: Any) -> list[Knob]:
    """A function of given arrays has a batch of its own, a program by hand has none."""
    if made_by_hand(request.source) or request.inputs:
        return []
    batch = request.batch_size or 1
    values = whole_stops(batch, 1, MAX_BATCH)
    size = Knob(
        name="batch_size",
        label="batch size",
        doc="Samples of one micro-batch",
        kind="argument",
        values=values,
        at=values.index(batch),
    )
    types = (None, *PRECISIONS[1:])
    precision = Knob(
        name="precision",
        label="precision",
        doc="Type of the model",
        kind="argument",
        values=types,
        at=types.index(request.precision),
        menu=True,
    )
    return [size, precision]


def option_knob(request: Any, name: str) -> Knob | None:
    """The knob of an option; None where its values have no neighbours, or there is one for each IPU.

    Errors: `OptionError` for a name that is no option that acts.
    """
    declared, value = found(name), request.options.get(name)
    if declared.many and isinstance(value, tuple):
        if len(value) != 1:
            return None
        value = value[0]
    numbers = declared.type in (int, float) and not declared.choices
    if numbers and value is not None:
        stops = whole_stops if declared.type is int else part_stops
        values = stops(value, declared.minimum, declared.maximum)
    else:
        values = tuple(sorted({value, *neighbours(declared, value)}, key=text_of))
    if len(values) < 2:
        return None
    group, _, last = name.rpartition(".")
    return Knob(
        name=name,
        label=declared.form_label or f"{last} ({group})",
        doc=declared.doc,
        kind="option",
        values=values,
        at=values.index(value),
        menu=not numbers,
    )


def whole_stops(value: int, low: float | None, high: float | None) -> tuple[int, ...]:
    """Whole numbers around one, inside bounds: up to 8 each, then four to an octave; the value itself is one."""
    least, most = int(low or 0), max(64, value * REACH)
    most = most if high is None else min(most, int(high))
    found = {value} | {each for each in range(9) if least <= each <= most}
    octave = 8
    while octave < most:
        found |= {octave + octave * part // EACH_OCTAVE for part in range(1, EACH_OCTAVE + 1)}
        octave *= 2
    return tuple(sorted(each for each in found if least <= each <= most or each == value))


def part_stops(value: float, low: float | None, high: float | None) -> tuple[float, ...]:
    """Twentieths up to 1 for a share; else shares and multiples of the value; inside bounds, the value itself one."""
    around = [part / 20 for part in range(21)] if 0 <= value <= 1 else [value * part / 4 for part in range(1, 17)]
    least, most = (float("-inf") if low is None else low), (float("inf") if high is None else high)
    return tuple(sorted({value, *(round(each, 6) for each in around if least <= each <= most)}))


def checked_at(knobs: Sequence[Knob], name: Any, at: Any) -> Knob:
    """The knob of a name that has such a place; `InputError` where there is none."""
    knob = next((each for each in knobs if each.name == name), None)
    if knob is None or type(at) is not int or not 0 <= at < len(knob.values):
        raise InputError(f"there is nothing to move to {at!r} of {name!r}", expected="a place of a slider or a menu")
    return knob


def moved(knobs: Sequence[Knob], positions: Positions) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments and the options that positions ask for, of those that are not where they were compiled."""
    away = [(knob, knob.values[positions[knob.name]]) for knob in knobs if positions[knob.name] != knob.at]
    arguments = {knob.name: value for knob, value in away if knob.kind == "argument"}
    return arguments, {knob.name: value for knob, value in away if knob.kind == "option"}


def request_at(request: Any, knobs: Sequence[Knob], positions: Positions) -> Any:
    """The request of a position. Errors: `OptionError` for options that cannot be together."""
    arguments, options = moved(knobs, positions)
    return request.replace(options=options, **arguments)


__all__ = ["Basis", "Knob", "Positions", "checked_at", "knobs_of", "moved", "option_knob", "request_at"]
