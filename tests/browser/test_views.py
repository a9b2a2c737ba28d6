"""The views in the real JupyterLab: drawn, linked, followed by the keyboard, and still there when nothing runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenNotebook
from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import eventually, is_drawn, view
from tests.profiler.handmade import handmade_pipeline
from tests.widgets.evil import EVIL, evil_profile
from workbench.widgets import linked

pytestmark = pytest.mark.browser

PROFILE = "from tests.profiler.handmade import handmade_profile\nhandmade_profile(fits=False)"
LINKED = (
    "from tests.profiler.handmade import handmade_pipeline\nfrom workbench.widgets import linked\n"
    "both = linked.views(handmade_pipeline(), 'liveness', 'pipeline', 'trace')\nboth"
)
# Where the liveness canvas begins and how much of its width is not plot, in pixels.
LEFT, MARGINS = 78, 92


@EVERY_SCREEN
def test_a_profile_shows_its_verdict_and_draws_every_tab(
    screens: Screens, run_views: Callable[..., NotebookPage]
) -> None:
    lab = run_views(PROFILE, screen=screens[0])
    page = lab.page
    page.get_by_role("heading", name="Does not fit").wait_for()
    for title in ("Memory", "Tile map", "Liveness", "Trace"):
        page.get_by_role("tab", name=title, exact=True).click()
        canvas = view(page, title).locator("canvas.wb-canvas")
        canvas.wait_for()
        for screen in lab.on(screens):
            eventually(page, partial(is_drawn, lab, canvas, colours=12, filled=0.1), f"{title} is drawn, {screen}")
            lab.screenshot(f"view-{title.lower().replace(' ', '-')}-{screen}")
        assert len(canvas.get_attribute("aria-label") or "") > 20
    labels = page.locator(".wb-tabs .lm-TabBar-tabLabel")
    assert labels.count() >= 10
    for screen in lab.on(screens):
        cut = labels.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)")
        assert cut == [], screen
    assert lab.websocket_bytes < 2_000_000


def test_a_click_on_the_peak_lists_what_is_live_there(run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(PROFILE)
    lab.page.get_by_role("tab", name="Liveness", exact=True).click()
    shown = view(lab.page, "Liveness")
    canvas = shown.locator("canvas.wb-canvas")
    canvas.click(position={"x": LEFT + 20, "y": 150})
    shown.get_by_role("heading", name="images/copy").wait_for()
    size = canvas.bounding_box()
    assert size is not None
    # The peak is at place 10 of 13.
    canvas.click(position={"x": LEFT + (size["width"] - MARGINS) * 10.5 / 13, "y": 150})
    shown.get_by_role("heading", name="Peak: dense_1/grad").wait_for()
    rows = shown.locator(".wb-side tbody tr").all_inner_texts()
    named = ["dense_1/kernel grad", "images", "dense_1/out", "dense_2/kernel grad"]
    assert [row.split("\t")[0].strip() for row in rows] == named
    assert [int(row.split("\t")[-1].replace(",", "")) for row in rows] == [2_000, 800, 400, 400]


def test_views_are_linked_and_follow_the_keyboard(run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(LINKED)
    pipeline = view(lab.page, "Pipeline")
    pipeline.locator("canvas.wb-canvas").focus()
    lab.page.keyboard.press("ArrowRight")
    pipeline.get_by_role("heading", name="Micro-batch 0").wait_for()
    lab.page.keyboard.press("ArrowRight")
    pipeline.get_by_role("heading", name="Micro-batch 1").wait_for()
    # Forward and backward on both IPUs.
    assert pipeline.locator(".wb-side table").nth(1).locator("tbody tr").count() == 4
    liveness = view(lab.page, "Liveness")
    liveness.locator("canvas.wb-canvas").focus()
    lab.page.keyboard.press("p")
    trace = view(lab.page, "Trace")
    trace.get_by_role("heading", name="stage_0/bwd exchange").wait_for()
    trace.locator("canvas.wb-canvas").focus()
    lab.page.keyboard.press("+")
    trace.get_by_role("heading", name="Cycles 2,070 to 8,280").wait_for()
    lab.page.keyboard.press("Home")
    trace.get_by_role("heading", name="The whole program").wait_for()


@pytest.mark.slow
def test_names_of_layers_are_text(run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views("from tests.widgets.evil import evil_profile\nevil_profile()")
    said: list[str] = []
    lab.page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    for title in ("Memory", "Tile map", "Liveness", "Trace", "Pipeline"):
        lab.page.get_by_role("tab", name=title, exact=True).click()
        canvas = view(lab.page, title).locator("canvas.wb-canvas")
        canvas.hover(position={"x": 200, "y": 30})
        canvas.click(position={"x": 200, "y": 30})
        lab.page.wait_for_timeout(200)
    assert said == []
    assert lab.page.locator("section.wb script").count() == 0
    assert any(EVIL in section for section in lab.page.locator("section.wb").all_inner_texts())


def test_stored_and_untrusted_every_view_is_a_picture(open_notebook: OpenNotebook, lab_folder: Path) -> None:
    bundle = handmade_pipeline()._repr_mimebundle_()
    output = nbformat.v4.new_output("execute_result", bundle, execution_count=1)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell("profile", outputs=[output], execution_count=1)]
    nbformat.write(notebook, lab_folder / "stored_views.ipynb")
    lab = open_notebook("stored_views.ipynb")
    assert not lab.trusted()
    pictures = lab.output(0).locator("img[alt]")
    pictures.first.wait_for()
    assert pictures.count() == len(linked.shown(handmade_pipeline()))
    for place in range(6):
        assert lab.picture(pictures.nth(place)).is_drawn(colours=6, filled=0.05)
    lab.screenshot_whole("stored-views-1280-light")


# What a page of ours never does, each `"refused"` by its policy.
FOREIGN = (
    """() => {
        const foreign = document.createElement("script");
        foreign.textContent = "window.ran = true";
        document.body.append(foreign);
        return window.ran ? "ran" : "refused";
    }""",
    """() => {
        document.body.insertAdjacentHTML("beforeend", "<b id='foreign' onclick='window.clicked = true'></b>");
        document.getElementById("foreign").click();
        return window.clicked ? "ran" : "refused";
    }""",
    """() => fetch("data:text/plain,hello").then(() => "left", () => "refused")""",
    """() => new Promise((resolve) => {
        const picture = new Image();
        picture.onload = () => resolve("shown");
        picture.onerror = () => resolve("refused");
        const text = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>';
        picture.src = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
    })""",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_works_from_a_file(scheme: str, chromium: Browser, tmp_path: Path) -> None:
    path = evil_profile().to_html(tmp_path / "profile.html")
    context = chromium.new_context(color_scheme=scheme, offline=True)  # type: ignore[arg-type]
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("dialog", lambda dialog: (failed.append("a name ran as code"), dialog.dismiss()))
    page.on("console", lambda said: failed.append(said.text) if said.type in ("error", "warning") else None)
    page.goto(path.as_uri())
    page.locator("canvas.wb-canvas").nth(4).wait_for()
    shown = view(page, "Pipeline")
    lit = shown.get_by_role("heading", name=re.compile(r"^Micro-batch \d+$"))
    for _ in range(60):  # a canvas is there before it listens
        shown.locator("canvas.wb-canvas").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(500)
        if lit.count():
            break
    lit.wait_for()
    view(page, "Memory").get_by_text("Data table").click()
    expect(view(page, "Memory").locator(".wb-data tbody tr")).to_have_count(16)
    assert failed == []
    for tried in FOREIGN:
        assert page.evaluate(tried) == "refused"
    assert len(failed) >= len(FOREIGN), "the page's policy says what it refused"
    context.close()
