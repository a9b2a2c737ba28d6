"""The tutorial of graphs and sessions as a user runs it: what is printed, what is drawn, what a mistake shows."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenNotebook
from tests.browser.driver import FIRST, OTHERS
from tests.browser.looking import RUN_SECONDS, assert_drawn, keep_looks

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_tutorial_runs_prints_and_draws(open_notebook: OpenNotebook) -> None:
    lab = open_notebook("notebooks/02-graphs-and-sessions.ipynb")
    lab.run_all(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    printed = "".join(
        output["text"] if isinstance(output["text"], str) else "".join(output["text"])
        for cell in lab.cells()
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream" and output["name"] == "stdout"
    )
    for result in ("[3. 8.]\n", "[array([3., 8.], dtype=float32)]\n", "[array([ 4., 14.], dtype=float32)]\n"):
        assert result in printed
    for screen in lab.on(FIRST + OTHERS):
        assert_drawn(lab, "sess.profile.trace", "Trace")
        keep_looks(lab, f"graphs-and-sessions-{screen}")
    assert lab.script_errors == []
