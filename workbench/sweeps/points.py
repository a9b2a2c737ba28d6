"""What a sweep asks for: a grid or a list of points, values of arguments, options or sizes, checked before any work."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.text import short
from workbench.engine.options import find_option
from workbench.errors import InputError, OptionError
from workbench.executable.request import VARIED, make_request

Point = Mapping[str, Any]


def points_of(grid: Any) -> list[dict[str, Any]]:
    """The points: every combination of a mapping's values, in order, or those of a list. Errors: `InputError`."""
    if isinstance(grid, Mapping):
        axes = {name: _values(name, values) for name, values in grid.items()}
        if not axes:
            raise InputError("the grid has no axis", expected="names with lists of values", todo=_EXAMPLE)
        return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    if isinstance(grid, str | bytes) or not isinstance(grid, Sequence):
        raise InputError(f"grid is {grid!r}", expected="a mapping of lists, or a list of mappings", todo=_EXAMPLE)
    for place, point in enumerate(grid):
        if not isinstance(point, Mapping) or not point:
            raise InputError(f"point {place} of the grid is {point!r}", expected="a mapping of names to values")
    if not grid:
        raise InputError("the grid has no point", expected="at least one", todo=_EXAMPLE)
    return [dict(point) for point in grid]


_EXAMPLE = 'write {"batch_size": [1, 2, 4]}'


def _values(name: Any, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        told = f"the axis {name!r} of the grid is {short(values)}"
        raise InputError(told, expected="a list of values", todo=f"write [{short(values)}]")
    found = list(values)
    if not found:
        raise InputError(f"the axis {name!r} is empty", expected="at least one value")
    return found


def kinds_of(points: Sequence[Point], source: Any) -> dict[str, str]:
    """What each name is: an `argument` of a compile, an `option` or a `size` of a ready model. Errors: `InputError`."""
    sizes = _sizes(source)
    return {name: _kind(name, sizes, source) for name in dict.fromkeys(name for point in points for name in point)}


def _kind(name: Any, sizes: Sequence[str], source: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"an axis of the grid is called {short(name)}", expected="a name")
    if name in VARIED:
        return "argument"
    if name in sizes:
        return "size"
    try:
        find_option(name)
    except OptionError as error:
        close = difflib.get_close_matches(name, [*VARIED, *sizes], n=1)
        raise InputError(
            f"{name!r} is nothing a sweep can change",
            expected=f"an argument ({', '.join(VARIED)}), an option"
            + (f", or a size of this model ({', '.join(sizes)})" if sizes else ""),
            todo=_in_a_loop(name, source) or (f"did you mean {close[0]!r}?" if close else error.todo),
        ) from None
    return "option"


def _in_a_loop(name: str, source: Any) -> str:
    """How to vary what a function takes itself; "" where the name is nothing it takes."""
    try:
        takes = inspect.signature(source).parameters if callable(source) else {}
    except (TypeError, ValueError):  # a callable of C that does not say what it takes
        takes = {}
    if name not in takes:
        return ""
    called = getattr(source, "__name__", "build")
    called = called if called.isidentifier() else "build"
    return (
        f"{name} is an argument of the function itself; make a function for each of its values, in a loop: "
        f"{{value: wb.profile(functools.partial({called}, {name}=value), ...) for value in values}}"
    )


def _sizes(source: Any) -> tuple[str, ...]:
    from workbench.engine.frontends.ready import ReadyModel, ready

    found = ready(source) if isinstance(source, str) else source
    return tuple(name for name, _ in found.size) if isinstance(found, ReadyModel) else ()


class Requests:
    """The request of each point; models of equal size are one object, so that points share their trace."""

    def __init__(self, source: Any, kinds: Mapping[str, str], arguments: Mapping[str, Any]) -> None:
        self._source, self._kinds, self._arguments = source, kinds, dict(arguments)
        self._sized: dict[tuple[tuple[str, Any], ...], Any] = {}

    def of(self, point: Point) -> Any:
        """The request of a point. Errors: `InputError` and `OptionError`, as of `wb.compile`."""
        kinds = self._kinds
        given = {name: value for name, value in point.items() if kinds[name] == "argument"}
        options = {name: value for name, value in point.items() if kinds[name] == "option"}
        sizes = tuple((name, value) for name, value in point.items() if kinds[name] == "size")
        request = make_request(self._of_size(sizes), **{**self._arguments, **given})
        if not options:
            return request
        return dataclasses.replace(request, options=request.options.with_values(options))  # what was given stays asked

    def _of_size(self, sizes: tuple[tuple[str, Any], ...]) -> Any:
        if not sizes:
            return self._source
        from workbench.engine.frontends.ready import ready

        if sizes not in self._sized:
            own = ready(self._source) if isinstance(self._source, str) else self._source
            self._sized[sizes] = ready(own.name, **{**dict(own.size), **dict(sizes)})
        return self._sized[sizes]


__all__ = ["Point", "Requests", "kinds_of", "points_of"]
