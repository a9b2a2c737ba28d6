"""Arguments are of the kinds that annotations say: others are refused with name and value before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import workbench as wb
from workbench.base.checked import bound, called, checked, checked_methods
from workbench.errors import CallError, InputError

Color = Literal["red", "blue"]


class Held:
    pass


@checked
def taken(
    count: int = 0,
    share: float = 0.0,
    is_on: bool = False,
    name: str | None = None,
    path: str | Path = "x",
    color: Color = "red",
    names: Sequence[str] = (),
    table: Mapping[str, int] | None = None,
    held: Held | None = None,
    hear: Callable[[str], None] | None = None,
    anything: Any = None,
) -> dict[str, Any]:
    return dict(locals())


class OfTwo:
    def __call__(self, phase: str, done: int) -> None: ...


@pytest.mark.parametrize(
    ("value", "takes"),
    [(lambda: None, "()"), (lambda one, two: None, "(one, two)"), (OfTwo(), "(phase, done)"), (OfTwo, "()")],
)
def test_a_function_that_cannot_be_called_as_it_will_be_is_refused_before_it_is(value: Any, takes: str) -> None:
    """Python's own TypeError came in the middle of a compile, from lines of ours."""
    with pytest.raises(InputError) as caught:
        taken(hear=value)
    assert str(caught.value).endswith(f", which takes {takes}. Expected: a function of one argument or None.")


@pytest.mark.parametrize("value", [print, [].append, lambda *all: None, lambda one, two=2: None, int, max])
def test_a_function_that_can_be_called_as_it_will_be_or_does_not_say(value: Any) -> None:
    assert taken(hear=value)["hear"] is value


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("count", np.int8(3), 3),
        ("share", np.float32(0.5), 0.5),
        ("share", 2, 2),
        ("is_on", np.True_, True),
        ("name", None, None),
        ("name", "", ""),
        ("path", Path("a"), Path("a")),
        ("color", "blue", "blue"),
        ("names", ["a", "b"], ("a", "b")),
        ("names", np.array(["a"]), ("a",)),
        ("table", {"a": 1}, {"a": 1}),
        ("hear", print, print),
        ("anything", {1}, {1}),
    ],
)
def test_a_value_of_the_kind_comes_as_a_plain_one(name: str, value: Any, plain: Any) -> None:
    found = taken(**{name: value})[name]
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("count", True, "count is True. Expected: a whole number."),
        ("count", 1.0, "count is 1.0. Expected: a whole number."),
        ("count", np.array([1, 2]), "count is array([1, 2]). Expected: a whole number."),
        ("share", "1", "share is '1'. Expected: a number."),
        ("is_on", 1, "is_on is 1. Expected: True or False."),
        ("name", b"a", "name is b'a'. Expected: text or None."),
        ("path", "", "path is ''. Expected: a path."),
        ("path", "a\0b", "path is 'a\\x00b'. Expected: a path."),
        ("color", "green", "color is 'green'. Expected: one of: 'red', 'blue'."),
        ("color", ["red"], "color is ['red']. Expected: one of:"),
        ("names", "ab", "names is 'ab'. Expected: a list, each text."),
        ("names", ["a", 1], "names is ['a', 1]. Expected: a list, each text."),
        ("table", [1], "table is [1]. Expected: a mapping or None."),
        ("held", 3, "held is 3. Expected: a Held or None."),
        ("hear", "bar", "hear is 'bar'. Expected: a function of one argument or None."),
    ],
)
def test_another_kind_is_refused_by_name(name: str, value: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        taken(**{name: value})
    assert str(caught.value).startswith(told)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(InputError) as caught:
        taken(count="9" * 10**6)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


def test_a_call_that_does_not_fit_is_an_error_of_both_kinds() -> None:
    for call in (lambda: taken(nosuch=1), lambda: called("taken", taken, nosuch=1)):  # type: ignore[call-arg]
        with pytest.raises(CallError, match="unexpected keyword argument 'nosuch'") as caught:
            call()
        assert isinstance(caught.value, TypeError)


def test_a_misspelt_argument_is_told_as_one_types_it() -> None:
    @checked
    def find(source: str, *, compiles: int = 8) -> None:
        """Nothing."""

    with pytest.raises(CallError) as caught:
        find("a", compile=3)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "find: got an unexpected keyword argument 'compile'. Expected: arguments of find(source, *, compiles=8). "
        "To mend it: did you mean 'compiles'?"
    )
    with pytest.raises(CallError, match=r"^find: missing a required argument: 'source'\. Expected: .*compiles=8\)\.$"):
        find(compiles=3)  # type: ignore[call-arg]


def test_what_judges_its_values_itself_still_refuses_names() -> None:
    @bound
    def judges(value: int = 1) -> object:
        return value

    assert judges("two") == "two"  # type: ignore[arg-type]
    with pytest.raises(CallError, match=r"did you mean 'value'\?$"):
        judges(valve=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("call", "close"),
    [
        (lambda: wb.compile("mlp", batchsize=2), "batch_size"),
        (lambda: wb.target("ipu2", tiles_per_ip=4), "tiles_per_ipu"),
        (lambda: wb.views(), ""),
        (lambda: wb.compare(label="a"), "labels"),
    ],
)
def test_the_front_door_tells_calls_of_arguments_it_does_not_have(call: Callable[[], object], close: str) -> None:
    with pytest.raises(CallError) as caught:
        call()
    assert caught.value.todo == (f"did you mean {close!r}?" if close else "")


def test_a_users_own_error_passes() -> None:
    @checked
    def asks(hear: Callable[[], None]) -> None:
        hear()

    def theirs() -> None:
        raise TypeError("theirs")

    with pytest.raises(TypeError, match=r"^theirs$"):
        asks(theirs)


def test_public_methods_of_a_class() -> None:
    class Some:
        def whole(self, count: int) -> int:
            return count

        @classmethod
        def of(cls, name: str) -> str:
            return name

    checked_methods(Some)
    assert Some().whole(np.int64(2)) == 2  # type: ignore[arg-type]
    for call in (lambda: Some().whole("2"), lambda: Some.of(2)):  # type: ignore[arg-type]
        with pytest.raises(InputError):
            call()


class Made:
    @checked
    def __init__(self, count: int = 0) -> None:
        self.count = count

    @checked
    def grown(self, by: int) -> int:
        return self.count + by

    @bound
    def told(self, by: int) -> int:
        return self.count - by


def test_a_call_is_told_as_it_is_typed() -> None:
    """What makes an object has the name of its class, and what a method is called on nobody types."""
    made: Any = Made
    for call, told in (
        (lambda: made(1, 2), "Made: too many positional arguments. Expected: arguments of Made(count=0)."),
        (lambda: made().grown(), "grown: missing a required argument: 'by'. Expected: arguments of grown(by)."),
        (lambda: made().told(), "told: missing a required argument: 'by'. Expected: arguments of told(by)."),
    ):
        with pytest.raises(CallError) as caught:
            call()
        assert str(caught.value) == told


def test_held_arguments_are_not_told() -> None:
    def written(profile: str, path: str) -> str:
        return profile + path

    with pytest.raises(CallError, match=r"save: missing .* 'path'\. Expected: arguments of save\(path\)\."):
        checked(written, "save", held=1)("of it")  # type: ignore[call-arg]


def test_several_by_place_are_no_near_name() -> None:
    """They cannot be given by name, so a near one is no help."""

    @bound
    def seen(profile: str, *names: str) -> None:
        """Views."""

    wrong: Any = seen
    with pytest.raises(CallError) as caught:
        wrong("p", name="trace")
    assert "did you mean" not in str(caught.value)
