"""Every public callable with its arguments, from signatures; `ordinary` says what each is given."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import workbench as wb
from tests.hostile import ordinary, things
from tests.hostile.in_numpy import IN_NUMPY
from workbench.base.registry import faces
from workbench.engine.options import attributes
from workbench.profiler.registry import methods, reports

UNKNOWN = "nosuch"  # the name given where a call takes names


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One public callable: `function` is called with arguments by name, those of `*star` in a tuple."""

    name: str
    function: Callable[..., Any]
    ordinary: Mapping[str, Any]
    arguments: tuple[str, ...]
    star: str = ""
    optional: frozenset[str] = frozenset()  # arguments whose default is None

    def defaults_to_none(self, argument: str) -> bool:
        return argument in self.optional

    def given(self, argument: str, value: Any) -> dict[str, Any]:
        """The arguments of an ordinary call with this value in the place of one, or of all that `*` stands for."""
        return {**self.ordinary, argument: (value,) if argument == self.star else value}

    def __call__(self, **changed: Any) -> Any:
        given = {**self.ordinary, **changed}
        starred = given.pop(self.star, ()) if self.star else ()
        before: list[Any] = []
        if starred:
            for each in inspect.signature(self.function).parameters.values():
                if each.kind is each.VAR_POSITIONAL:
                    break
                before.append(given.pop(each.name))
        return self.function(*before, *starred, **given)


def call(
    name: str,
    function: Callable[..., Any],
    opened: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Call:
    """A callable with the arguments of its signature; `opened` are those that `**` stands for, with their defaults.

    `given`: what an ordinary call gives, where `ordinary` does not say it.
    """
    arguments: list[str] = []
    star = ""
    defaults = dict(opened or {})
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_POSITIONAL:
            star = each.name
        if each.kind is each.VAR_KEYWORD:
            arguments += [*(opened or ()), UNKNOWN]
        elif not each.name.startswith("_"):
            arguments.append(each.name)
            defaults[each.name] = each.default
    return Call(
        name=name,
        function=function,
        ordinary=ordinary.given(name, function) if given is None else given,
        arguments=tuple(arguments),
        star=star,
        optional=frozenset(name for name, default in defaults.items() if default is None),
    )


def api() -> Iterator[Call]:
    """The functions of `wb`; those that hand arguments on to a compile take all of its."""
    compiled_with = {
        each.name: each.default
        for each in inspect.signature(wb.compile).parameters.values()
        if each.name not in ("source", "inputs")
    }
    for name in wb.__all__:
        function = getattr(wb, name)
        if inspect.isfunction(function):
            named = inspect.signature(function).parameters
            opened = {key: default for key, default in compiled_with.items() if key not in named}
            hands_on = "source" in named and "arguments" in named
            yield call(f"wb.{name}", function, opened if hands_on else None)


def of(label: str, made: Any, opened: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[Call]:
    """The methods of an object that take anything, under the label of its kind."""
    kind = type(made)
    names = {name for name in dir(kind) if not name.startswith("_")} | (set(methods) if label == "Profile" else set())
    fields = {each.name for each in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for name in sorted(names - fields):
        if isinstance(inspect.getattr_static(kind, name, None), property):
            continue
        if name == "widget" and made.name not in faces:
            continue
        function = getattr(made, name, None)
        if (inspect.ismethod(function) or inspect.isfunction(function)) and inspect.signature(function).parameters:
            yield call(f"{label}.{name}", function, (opened or {}).get(name))


def objects() -> Iterator[Call]:
    """The methods of what calls give back."""
    machine, profile = things.machine(), things.profile()
    yield from of("Profile", profile)
    yield from of("Executable", things.small_executable())
    fields = dict.fromkeys(("bytes_per_tile", *(each.name for each in dataclasses.fields(machine))), ...)
    yield from of("Target", machine, {"replace": fields})
    for name in sorted(reports):
        report = getattr(profile, name)
        yield from of(type(report).__name__, report)
    yield from of("Comparison", wb.compare(profile, profile))
    for made in things.decisions():
        yield from of(type(made).__name__, made)


def operations() -> Iterator[Call]:
    """The operations of `tf` that NumPy has too."""
    for name in IN_NUMPY:
        module = wb.tf.nn if name.startswith("tf.nn.") else wb.tf.math
        yield call(name, getattr(module, name.rpartition(".")[2]))


def options() -> Iterator[Call]:
    """The options of an `IPUConfig`: each is set and frozen, as a compile does."""
    for each in attributes():
        *path, last = each.name.split(".")
        given = {last: each.initial()}
        yield Call(name=f"IPUConfig.{each.name}", function=setting(path, last), ordinary=given, arguments=(last,))


def setting(path: list[str], last: str) -> Callable[..., Any]:
    def set_and_freeze(**given: Any) -> Any:
        config = wb.ipu.config.IPUConfig()
        setattr(functools.reduce(getattr, path, config), last, given[last])
        return config.freeze()

    return set_and_freeze


def by_hand() -> Iterator[Call]:
    """The methods of `wb.tiles`, each on a fresh graph."""
    from tests.hostile.by_hand import programs

    return programs()


def of_ipu() -> Iterator[Call]:
    """The functions of `wb.ipu`."""
    from tests.hostile.of_ipu import cells

    return cells()


def classes_of_ipu() -> Iterator[Call]:
    """The classes of `wb.ipu`, and pipelines."""
    from tests.hostile.of_ipu_classes import cells

    return cells()


def models_of_ipu() -> Iterator[Call]:
    """The models of TensorFlow 2.1."""
    from tests.hostile.of_models import cells

    return cells()


def of_tf() -> Iterator[Call]:
    """What `wb.tf` has beside its operations."""
    from tests.hostile.of_tf import cells

    return cells()


def sessions() -> Iterator[Call]:
    """Sessions and their methods, over a graph that doubles what it is fed."""
    graph = wb.tf.Graph()
    with graph.as_default():
        fed = wb.tf.random_uniform([4, 4], name="fed")  # a value of its own, where none is fed
        doubled = wb.tf.add(fed, fed, name="doubled")
    session = wb.tf.Session(graph=graph)
    yield call("tf.Session", wb.tf.Session, given={"graph": graph})
    yield call("Session.run", session.run, given={"fetches": doubled, "feed_dict": {fed: things.square()}})
    yield call("Session.make_callable", session.make_callable, given={"fetches": doubled, "feed_list": [fed]})


ROOMS: Mapping[str, Callable[[], Iterator[Call]]] = {
    "api": api,
    "objects": objects,
    "operations": operations,
    "options": options,
    "by hand": by_hand,
    "of ipu": of_ipu,
    "classes of ipu": classes_of_ipu,
    "models of ipu": models_of_ipu,
    "of tf": of_tf,
    "sessions": sessions,
}
