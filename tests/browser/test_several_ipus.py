"""The page on several IPUs as a user runs it."""

from __future__ import annotations

import nbformat
import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.driver import FIRST, OTHERS
from tests.browser.looking import RUN_SECONDS, assert_drawn, keep_looks
from tests.notebooks.several_ipus import check

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_page_on_several_ipus_runs_and_draws(open_notebook: OpenNotebook) -> None:
    lab = open_notebook("notebooks/03-several-ipus.ipynb")
    lab.run_all(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    check(nbformat.from_dict({"cells": lab.cells()}))
    for screen in lab.on(FIRST + OTHERS):
        assert_drawn(lab, "grouped.profile.pipeline", "Pipeline")
        assert_drawn(lab, "compare_schedules", "Schedules")
        keep_looks(lab, f"several-ipus-{screen}")
    assert lab.script_errors == []
