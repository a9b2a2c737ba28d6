"""The table of stories: its tests are there and are run; those in a browser meet every pair of screen and hand."""

from __future__ import annotations

import ast
from itertools import combinations, product

import pytest

from tests.browser.driver import FIRST, OTHERS
from tests.node_ids import decorators_of, function_of
from tests.stories import BROWSER, STORIES, Story

SIDES = {"width": (1280, 1920), "theme": ("light", "dark"), "hand": ("mouse", "keyboard")}
TESTS = [(story, test) for story in STORIES for test in story.tests]


def screens_of(test: str) -> list[tuple[int, str]]:
    """The widths and themes a test is run at: all where it takes them, else the first."""
    function = function_of(test)
    assert function is not None
    every = any(argument.arg == "screens" for argument in function.args.args)
    return [*FIRST, *OTHERS] if every else [*FIRST]


def test_there_are_twenty_five() -> None:
    assert [story.number for story in STORIES] == list(range(1, 26))
    assert len({story.text for story in STORIES}) == 25


def test_every_story_has_tests() -> None:
    assert all(story.tests for story in STORIES)


@pytest.mark.parametrize(("story", "test"), TESTS, ids=[f"{story.number}: {test}" for story, test in TESTS])
def test_its_test_is_there_and_runs(story: Story, test: str) -> None:
    function = function_of(test)
    assert function is not None, f"{test} is not there"
    assert not decorators_of(function) & {"skip", "xfail"}
    body = ast.unparse(function)
    assert "pytest.skip" not in body
    assert story.kind != BROWSER or test.startswith("tests/browser/")


@pytest.mark.parametrize("story", [each for each in STORIES if each.hand], ids=lambda story: str(story.number))
def test_what_is_told_in_a_browser_is_done_by_keyboard_too(story: Story) -> None:
    assert "keyboard" in story.hand


def test_every_pair_of_a_screen_and_a_hand_is_met() -> None:
    """Of width, theme and hand, over the stories that are told in a browser."""
    met = set()
    for story in STORIES:
        assert bool(story.hand) == (story.kind == BROWSER)
        for test in story.tests if story.hand else ():
            for (width, theme), hand in product(screens_of(test), story.hand):
                met.add((width, theme, hand))
    for (first, values), (second, others) in combinations(SIDES.items(), 2):
        places = [list(SIDES).index(side) for side in (first, second)]
        pairs = {(row[places[0]], row[places[1]]) for row in met}
        assert pairs == set(product(values, others)), f"{first} and {second}"
