"""Names are shown as text, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.text import cell, of_cell, shown

ANY = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense/kernel → ä 日本 🙂", "dense/kernel → ä 日本 🙂"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("two\nlines\ttab\r", "two\\nlines\\ttab\\r"),
        ("a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"),
        ("\ud800", "\\ud800"),
        ("a\u2028b\x85", "a\\u2028b\\x85"),
        ("1\u202f000 and\u00a0more", "1\u202f000 and\u00a0more"),
    ],
)
def test_what_is_hidden_is_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_ends_of_lines_may_stay() -> None:
    assert shown("a\nb\x1bc", keep="\n") == "a\nb\\x1bc"


@given(text=ANY)
def test_what_is_shown_is_one_line_that_can_be_written_and_is_shown_once(text: str) -> None:
    found = shown(text)
    assert len(found.splitlines()) <= 1
    assert found.encode("utf-8").decode("utf-8") == found
    assert shown(found) == found


@given(text=st.one_of(ANY, st.text("'=+-@\t\r a", max_size=5)))
def test_a_cell_is_no_formula_and_gives_its_text_back(text: str) -> None:
    assert not cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert of_cell(cell(text)) == text
