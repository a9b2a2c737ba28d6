"""The two notebooks as a user meets them: opened from a fresh clone without a run, and run from top to bottom."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, OpenNotebook
from tests.browser.driver import EVERY_SCREEN, FIRST, OTHERS, NotebookPage, Screens
from tests.browser.looking import RUN_SECONDS, assert_drawn, eventually, is_drawn, keep_looks, shown, view

pytestmark = pytest.mark.browser

FIRST_LOOK = "notebooks/00-first-look.ipynb"
LESSON = "notebooks/01-tiles-and-steps.ipynb"
WIDGET, HTML = "application/vnd.jupyter.widget-view+json", "text/html"
MAX_BYTES = 10_000_000
# Where the liveness canvas begins and how much of its width is not plot, in pixels.
LEFT, MARGINS = 78, 92


def whole(pattern: str, text: str) -> int:
    """The number that a pattern finds in a text, its thousands separated."""
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


def assert_peak_lists_its_variables(lab: NotebookPage) -> None:
    """A click on the highest point of ResNet-50's liveness lists the variables there, the largest first."""
    liveness = view(shown(lab, "wb.views(resnet.profile"), "Liveness")
    liveness.get_by_text("Data table").click()
    rows = liveness.locator(".wb-data tbody tr")
    steps = rows.count() - 1 + whole(r"([\d,]+) more rows", rows.last.inner_text())
    peak = whole(r"at place ([\d,]+)", liveness.locator(".wb-side p").inner_text())
    canvas = liveness.locator("canvas.wb-canvas")
    canvas.scroll_into_view_if_needed()
    size = canvas.bounding_box()
    assert size is not None
    canvas.click(position={"x": LEFT + 5, "y": 100})
    heading = liveness.locator(".wb-side h4")
    expect(heading).not_to_have_text(re.compile("^Peak: "))
    canvas.click(position={"x": LEFT + (size["width"] - MARGINS) * (peak + 0.5) / steps, "y": 100})
    expect(heading).to_have_text(re.compile("^Peak: "))
    listed = liveness.locator(".wb-side tbody tr").all_inner_texts()
    sizes = [int(row.split("\t")[-1].replace(",", "")) for row in listed if "more rows" not in row]
    assert len(sizes) > 5
    assert sizes == sorted(sizes, reverse=True)


@EVERY_SCREEN
def test_run_all_draws_every_view_without_an_error(screens: Screens, open_notebook: OpenNotebook) -> None:
    lab = open_notebook(FIRST_LOOK, screens[0])
    run = lab.run_all if screens == FIRST else lab.run_all_by_keys
    run(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    assert_peak_lists_its_variables(lab)
    shown(lab, "diagnosis = wb.diagnose").get_by_text("to spare").first.wait_for()
    shown(lab, "mended = diagnosis.apply").get_by_role("heading", name="Fits").wait_for()
    for screen in lab.on(screens):
        assert_drawn(lab, "wb.views(by_hand", "Tile map", "Trace")
        assert_drawn(lab, "wb.views(resnet.profile", "Memory", "Liveness", "Trace")
        assert_drawn(lab, "pipelined.profile.pipeline", "Pipeline")
        assert_drawn(lab, "wb.views(too_big.profile", "Liveness")
        keep_looks(lab, f"first-look-run-{screen}")
    assert lab.websocket_bytes < MAX_BYTES
    assert lab.foreign_requests == []
    assert lab.script_errors == []


@pytest.mark.slow
def test_the_lesson_runs_and_draws(open_notebook: OpenNotebook) -> None:
    lab = open_notebook(LESSON)
    lab.run_all(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    shown(lab, "task.check(attempt)").get_by_text("fit-the-tile: 4 of 10 points").wait_for()
    for screen in lab.on(FIRST + OTHERS):
        assert_drawn(lab, "alone.tile_map", "Tile map")
        assert_drawn(lab, "uneven.total_cycles", "Trace")
        assert_drawn(lab, "wb.views(again", "Liveness", "Tile map")
        keep_looks(lab, f"lesson-run-{screen}")
    assert lab.script_errors == []


OTHER_NOTEBOOKS = ("04-find-a-configuration", "05-how-far-to-trust", "06-cut-a-model")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", OTHER_NOTEBOOKS)
def test_a_notebook_runs_and_what_it_shows_is_drawn(notebook: str, open_notebook: OpenNotebook) -> None:
    lab = open_notebook(f"notebooks/{notebook}.ipynb", OTHERS[0])
    lab.run_all(seconds=RUN_SECONDS)
    assert lab.cell_errors() == []
    # Bars of progress are widgets too, which close.
    views = [
        place for place, cell in enumerate(lab.cells()) if any({WIDGET, HTML} <= {*each} for each in data_of(cell))
    ]
    for place in views:
        output = lab.output(place)
        output.scroll_into_view_if_needed()
        output.locator("section.wb").first.wait_for()
        for canvas in (each for each in output.locator("canvas.wb-canvas").all() if each.is_visible()):
            canvas.scroll_into_view_if_needed()
            drawn = partial(is_drawn, lab, canvas, colours=6, filled=0.02)
            eventually(lab.page, drawn, f"a picture of cell {place} is drawn")
    assert len(views) >= 1 or lab.page.locator(".jp-OutputArea-output table").count() >= 2
    for screen in lab.on(OTHERS[:1] + FIRST):
        keep_looks(lab, f"{notebook[:2]}-run-{screen}")
    assert lab.foreign_requests == []
    assert lab.script_errors == []


def data_of(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """What the outputs of a cell are made of."""
    return [output.get("data", {}) for output in cell.get("outputs", [])]


def assert_stored_pictures(lab: NotebookPage, stored: list[int]) -> None:
    with lab.as_high_as_the_notebook():
        for place in stored:
            pictures = lab.output(place).locator("img[alt]")
            tables = lab.output(place).locator("table")
            # JupyterLab looks for a live widget first and turns to the picture when there is none.
            pictures.or_(tables).first.wait_for()
            for picture in pictures.all():
                # The points of a roofline fill a twenty-fifth of its picture.
                assert lab.picture(picture).is_drawn(colours=6, filled=0.02), f"cell {place}"


def assert_tables_open_by_keys(lab: NotebookPage, stored: list[int]) -> None:
    """The table below the first picture."""
    with lab.as_high_as_the_notebook():
        below = lab.output(stored[0]).locator("details:has(> summary)").first
        rows = below.locator("tbody tr").first
        if not rows.is_visible():  # it stays open from the screen before
            below.locator("> summary").press("Enter")
        expect(rows).to_be_visible()


@EVERY_SCREEN
@pytest.mark.parametrize("notebook", [FIRST_LOOK, LESSON], ids=["first look", "lesson"])
def test_stored_and_untrusted_every_view_is_a_picture(
    notebook: str, screens: Screens, open_notebook: OpenNotebook, lab_folder: Path
) -> None:
    # A copy of its own: JupyterLab may have saved, and so signed, the one that another test ran.
    fresh = f"stored-{Path(notebook).name}"
    shutil.copy(ROOT / notebook, lab_folder / fresh)
    lab = open_notebook(fresh, screens[0])
    assert not lab.trusted()
    stored = [place for place, cell in enumerate(lab.cells()) if any(WIDGET in each for each in data_of(cell))]
    assert len(stored) >= 6
    for screen in lab.on(screens):
        assert_stored_pictures(lab, stored)
        if screens != FIRST:
            assert_tables_open_by_keys(lab, stored)
        keep_looks(lab, f"{notebook[10:12]}-stored-{screen}")
    assert lab.page.get_by_text("Error displaying widget").count() == 0
    assert lab.page.get_by_text("Loading widget").count() == 0
