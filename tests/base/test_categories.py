"""The words for what memory holds: each once, and a kind for every role."""

from typing import get_args

from workbench.base.categories import (
    CATEGORY_WORDS,
    CODE_CATEGORIES,
    FOOTPRINT_CATEGORIES,
    MEMORY_CATEGORIES,
    VARIABLE_CATEGORIES,
)
from workbench.engine.graph.graph import Role
from workbench.engine.lower.roles import KIND_OF_ROLE
from workbench.widgets.kit import palette


def test_a_category_has_one_name() -> None:
    assert len(set(MEMORY_CATEGORIES)) == len(MEMORY_CATEGORIES) == len(VARIABLE_CATEGORIES) + len(FOOTPRINT_CATEGORIES)
    assert FOOTPRINT_CATEGORIES[: len(CODE_CATEGORIES)] == CODE_CATEGORIES


def test_every_role_is_held_as_a_kind() -> None:
    assert set(KIND_OF_ROLE) == set(get_args(Role))
    assert set(KIND_OF_ROLE.values()) <= set(VARIABLE_CATEGORIES)
    held_as_another = {role: kind for role, kind in KIND_OF_ROLE.items() if role != kind}
    assert held_as_another == {"accumulator": "optimizer", "seed": "state", "target": "input", "argument": "input"}


def test_every_category_has_its_paint_and_its_words() -> None:
    assert set(palette.CATEGORIES) == set(MEMORY_CATEGORIES) == set(CATEGORY_WORDS)
    assert {name: each["label"] for name, each in palette.CATEGORIES.items()} == CATEGORY_WORDS
    assert not any("_" in words for words in CATEGORY_WORDS.values())
    assert len(set(CATEGORY_WORDS.values())) == len(CATEGORY_WORDS)
