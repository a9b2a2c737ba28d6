"""The page on several IPUs as a user runs it."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.test_first_look import RUN_SECONDS, assert_drawn, keep_looks, shown

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1920, "dark")])
def test_the_page_on_several_ipus_runs_and_draws(width: int, theme: str, open_notebook: OpenNotebook) -> None:
    lab = open_notebook("notebooks/03-several-ipus.ipynb", width=width, theme=theme)
    lab.run_all(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    assert_drawn(lab, "grouped.profile.pipeline", "Pipeline")
    picture = shown(lab, "compare_schedules").locator("img[alt]").first
    picture.wait_for()
    assert lab.picture(picture).is_drawn(colours=6, filled=0.05)
    assert lab.script_errors == []
    keep_looks(lab, f"several-ipus-{width}-{theme}")
