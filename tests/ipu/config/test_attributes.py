"""Nested attributes, on a small configuration made for the purpose.

Rows CFG-* are what graphcore/tensorflow@b2127bba python/ipu/tests/config_test.py asserts, of the same small structure.
"""

from __future__ import annotations

import copy
import json
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import OptionError
from workbench.ipu.config._attributes import Attribute, matches, type_text
from workbench.ipu.config._base import ConfigBase, document


class Fruit(Enum):
    APPLE = 1
    ORANGE = 2
    PEAR = 3


ANY = int | str | list
DEEP = tuple[list[float | tuple[str]], ...]
ATTRIBUTES = (
    Attribute(name="attr0", default=lambda: 1, annotation=ANY, doc="The text of attr0."),
    Attribute(name="attr6", default=lambda: ([1.0],), annotation=DEEP),
    Attribute(name="nested1", doc="The text of nested1."),
    Attribute(name="nested1.attr1", default=lambda: 1, annotation=int | list, deprecated="It does nothing."),
    Attribute(name="nested1.nested2", deprecated="No longer needed."),
    Attribute(name="nested1.nested2.attr2", default=lambda: 1),
    Attribute(name="nested1.nested2.nested4"),
    Attribute(name="nested1.nested2.nested4.attr4", default=lambda: False),
    Attribute(name="nested1.nested2.nested4.attr7", default=lambda: Fruit.APPLE),
    Attribute(name="nested1.nested2.attr5", default=lambda: 1, deprecated="attr5 went first."),
    Attribute(name="nested1.nested3"),
    Attribute(name="nested1.nested3.attr3", default=lambda: "test", doc="The text of attr3."),
    Attribute(name="nested1.nested3.attr0", default=lambda: 1),
)


@pytest.fixture
def config() -> ConfigBase:
    return ConfigBase(ATTRIBUTES)


def test_assigned_values_are_kept_apart_by_category(config: ConfigBase) -> None:  # CFG-assign, CFG-same-name
    config.attr0 = 5
    config.nested1.nested3.attr0 = 7
    assert (config.attr0, config.nested1.nested3.attr0) == (5, 7)
    assert ConfigBase(ATTRIBUTES).attr0 == 1


def test_a_category_cannot_be_assigned(config: ConfigBase) -> None:  # CFG-assign-category
    with pytest.raises(OptionError, match=r"nested1\.nested2 is a category and cannot be assigned to.*attr2, nested4"):
        config.nested1.nested2 = 1


@pytest.mark.parametrize(
    ("dotted", "says"),
    [
        ("_private_attribute", r"^'_private_attribute' is not a valid attribute of this config\.$"),
        ("nested5", r"'nested5' is not a valid attribute of this config\. Did you mean 'nested1'\?"),
        ("nested11.nested2.attr2", r"'nested11' is not a valid attribute.* Did you mean 'nested1'\?"),
        ("nested1.nested3.attr33", r"Did you mean 'nested1\.nested3\.attr3'\?"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(config: ConfigBase, dotted: str, says: str) -> None:
    *path, last = dotted.split(".")  # CFG-assign-private, CFG-didyoumean-*

    def assign() -> None:
        owner: Any = config
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, 1)

    with pytest.raises(ValueError, match=says):
        assign()
    assert not hasattr(config, "nested5")


@pytest.mark.parametrize("value", [1, "test", [5, "test", True]])
def test_a_union_takes_each_of_its_types(config: ConfigBase, value: Any) -> None:  # CFG-typehint-union
    config.attr0 = value
    assert config.attr0 == value


@pytest.mark.parametrize("value", [True, (1,), 1.0])
def test_a_union_takes_nothing_else(config: ConfigBase, value: Any) -> None:
    with pytest.raises(TypeError, match=r"attr0 .* must be of type typing\.Union\[int, str, list\]"):
        config.attr0 = value
    assert config.attr0 == 1


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (([1.0],), True),
        (([1.0, 2.0, ("test1",)],), True),
        (([5.0], [("test2",)]), True),
        (True, False),
        (([True],), False),
        (([1.0], ["test1"]), False),
        (([1.0], [("test1",), 1]), False),
        (([("one", "two")],), False),
    ],
)
def test_types_inside_types_are_checked(value: Any, right: bool) -> None:  # CFG-typehint-deep
    assert matches(value, DEEP) is right


def test_a_type_is_written_as_the_reference_writes_it(config: ConfigBase) -> None:
    text = "typing.Tuple[typing.List[typing.Union[float, typing.Tuple[str]]], ...]"
    assert type_text(DEEP) == text
    with pytest.raises(TypeError, match="must be of type typing"):
        config.attr6 = True


def test_a_number_and_an_enumeration_cannot_share_an_option() -> None:  # ERR-017
    with pytest.raises(ValueError, match="takes an integer or an enumeration"):
        Attribute(name="both", default=lambda: 1, annotation=int | Fruit)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attr0", ("attr0", "typing.Union[int, str, list]", 1, "The text of attr0.", 1)),
        ("nested1.nested3.attr3", ("nested1.nested3.attr3", "str", "test", "The text of attr3.", 3)),
        ("nested1.nested3.attr0", ("nested1.nested3.attr0", "int", 1, "No description provided.", 3)),
        ("nested1", ("nested1", None, None, "The text of nested1.", 1)),
    ],
)
def test_metadata(config: ConfigBase, name: str, expected: tuple[Any, ...]) -> None:  # CFG-metadata
    found = config.get_attribute_metadata(name)
    assert (found.name, found.type, found.default, found.__doc__, found._depth) == expected
    inner = config.nested1.get_attribute_metadata("nested3.attr3")
    assert inner.name == "nested1.nested3.attr3"


@pytest.mark.parametrize(("owner", "name"), [("", "nested1.attr5"), ("nested1", "nested1.attr1"), ("", "attr0.x")])
def test_metadata_of_no_option(config: ConfigBase, owner: str, name: str) -> None:  # CFG-metadata-unknown, -notrel
    asked = getattr(config, owner) if owner else config
    with pytest.raises(ValueError, match=f"Could not get attribute metadata for '{name}'"):
        asked.get_attribute_metadata(name)


def test_metadata_checks_a_type(config: ConfigBase) -> None:
    found = config.get_attribute_metadata("nested1.nested2.attr2")
    assert found.check_type(3) is True
    with pytest.raises(TypeError, match=r"nested1\.nested2\.attr2"):
        found.check_type("3")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nested1.attr1", "It does nothing."),  # CFG-deprec-warn
        ("nested1.nested2.nested4.attr4", "No longer needed."),  # CFG-deprec-propagate
        ("nested1.nested2.nested4", "No longer needed."),
        ("nested1.nested2.attr5", "attr5 went first."),  # CFG-deprec-keep
        ("nested1.nested3.attr3", None),  # CFG-deprec-none
    ],
)
def test_deprecation(config: ConfigBase, name: str, message: str | None, caplog: pytest.LogCaptureFixture) -> None:
    metadata = config.get_attribute_metadata(name)
    assert (metadata.deprecated, metadata.deprecated_msg) == (message is not None, message)
    metadata.warn_if_deprecated()
    assert caplog.messages == ([f"{name} has been deprecated: {message}"] if message else [])


def test_assigning_a_deprecated_option_warns(config: ConfigBase, caplog: pytest.LogCaptureFixture) -> None:
    config.nested1.nested3.attr3 = "quiet"
    assert caplog.messages == []
    config.nested1.attr1 = 2
    assert caplog.messages == ["nested1.attr1 has been deprecated: It does nothing."]


def test_deprecations_belong_to_their_own_structure() -> None:  # CFG-parallel-deprec
    made = [ConfigBase((Attribute(name="a", default=lambda: 1, deprecated=text),)) for text in ("one", "two")]
    assert [each.get_attribute_metadata("a").deprecated_msg for each in made] == ["one", "two"]


def test_documentation_has_an_entry_for_each(config: ConfigBase) -> None:  # CFG-docgen
    text = document(config)
    assert text == document(config)
    lines = text.splitlines()
    start = lines.index("         .. _nested1.nested3.attr3:")
    assert lines[start + 1 : start + 4] == [
        "         .. py:attribute:: nested1.nested3.attr3",
        "            :type: str",
        '            :value: "test"',
    ]
    assert "      DEPRECATED: It does nothing." in text
    assert "   .. _nested1:\n   .. py:attribute:: nested1\n\n" in text


def test_values_come_back_from_a_dictionary_and_json(config: ConfigBase) -> None:  # CFG-fromdict, -todict-enum
    config.attr0 = 12
    config.nested1.nested2.attr2 = 56
    config.nested1.nested2.nested4.attr7 = Fruit.PEAR
    saved = config.to_dict()
    assert (saved["attr0"], saved["nested1.nested2.attr2"], saved["nested1.nested2.nested4.attr7"]) == (12, 56, 3)
    other = ConfigBase(ATTRIBUTES)
    other.from_dict(saved)
    assert other == config
    assert other.nested1.nested2.nested4.attr7 is Fruit.PEAR
    assert json.loads(config.to_json())["attr0"] == 12


def test_what_is_not_in_a_dictionary_keeps_its_value(config: ConfigBase, caplog: pytest.LogCaptureFixture) -> None:
    config.nested1.nested3.attr3 = "kept"
    config.from_dict({"attr0": 9, "nested1.nested2.nested4.attr7": 2})  # CFG-fromdict-enum
    assert (config.attr0, config.nested1.nested3.attr3) == (9, "kept")
    assert config.nested1.nested2.nested4.attr7 is Fruit.ORANGE
    assert "nested1.nested3.attr3 is not in the given configuration and keeps its value" in caplog.messages


def test_wrong_entries_are_all_listed_and_none_applied(config: ConfigBase) -> None:
    wrong = {"attr0": 2, "atr0": 1, "nested1.nested2.attr2": "text", "nested1.nested2.nested4.attr7": 8}
    with pytest.raises(OptionError) as caught:
        config.from_dict(wrong)
    text = str(caught.value)
    assert text.startswith("3 wrong entries: ")
    assert all(part in text for part in ("did you mean 'attr0'", "nested1.nested2.attr2", "3 (PEAR)"))
    assert config == ConfigBase(ATTRIBUTES)


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_json_of_something_else(config: ConfigBase, text: str) -> None:
    with pytest.raises(OptionError, match="JSON"):
        config.from_json(text)


def test_repr_has_a_line_for_each(config: ConfigBase) -> None:  # CFG-repr
    config.attr0 = 12
    config.nested1.attr1 = 34
    config.nested1.nested2.attr2 = 56
    config.nested1.nested2.nested4.attr7 = Fruit.PEAR
    assert repr(config).splitlines() == [
        "ConfigBase:",
        "  attr0 = 12",
        "  attr6 = ([1.0],)",
        "  nested1.attr1 = 34",
        "  nested1.nested2.attr2 = 56",
        "  nested1.nested2.nested4.attr4 = False",
        "  nested1.nested2.nested4.attr7 = Fruit.PEAR",
        "  nested1.nested2.attr5 = 1",
        "  nested1.nested3.attr3 = 'test'",
        "  nested1.nested3.attr0 = 1",
    ]


def test_a_copy_shares_nothing(config: ConfigBase) -> None:
    config.attr0 = [5]
    other = copy.deepcopy(config)
    other.attr0.append(6)
    other.nested1.attr1 = 3
    assert (config.attr0, config.nested1.attr1) == ([5], 1)


@given(st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False), st.text(), st.lists(st.integers())))
def test_a_value_is_either_kept_or_refused(value: Any) -> None:
    config = ConfigBase(ATTRIBUTES)
    right = type(value) in (int, str, list)
    try:
        config.attr0 = value
    except TypeError:
        assert not right
        assert config.attr0 == 1
    else:
        assert right
        assert config.attr0 == value
