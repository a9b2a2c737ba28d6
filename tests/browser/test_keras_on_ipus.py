"""The page of Keras on IPUs as it is stored: nothing of its code and its tables is cut."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.driver import FIRST, OTHERS
from tests.browser.looking import keep_looks

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The first characters of every cell and output that is wider than the place it has.
CUT = """() => [...document.querySelectorAll('.jp-Notebook .cm-scroller, .jp-Notebook .jp-OutputArea-output')]
    .filter(place => place.scrollWidth > place.clientWidth + 1)
    .map(place => `${place.scrollWidth} in ${place.clientWidth}: ${place.textContent.slice(0, 80)}`)"""


def test_the_stored_page_of_keras_is_read_without_scrolling_sideways(open_notebook: OpenNotebook) -> None:
    lab = open_notebook("notebooks/07-keras-on-ipus.ipynb")
    for screen in lab.on(FIRST + OTHERS):
        keep_looks(lab, f"keras-on-ipus-{screen}")
        assert lab.page.locator(".jp-Notebook .jp-OutputArea-output table").count() >= 2
        with lab.as_high_as_the_notebook():
            assert lab.page.evaluate(CUT) == [], screen
    assert lab.script_errors == []
