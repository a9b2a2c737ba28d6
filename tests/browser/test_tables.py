"""Nothing is drawn that a table does not say: every view of a page has one, with rows, and keys reach it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.looking import view
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.profile import Profile
from workbench.widgets import linked

pytestmark = pytest.mark.browser

ALL_IN_SIGHT = ("summary",)  # texts and numbers, of which nothing is a picture's alone
WIDE = "e => [...e.querySelectorAll('*')].filter(x => x.getBoundingClientRect().right > innerWidth + 1).length"


@pytest.mark.parametrize(
    ("make", "width", "scheme"), [(handmade_pipeline, 1280, "light"), (handmade_profile, 1920, "dark")]
)
def test_every_view_of_a_page_has_its_table(
    make: Callable[[], Profile], width: int, scheme: Any, chromium: Browser, tmp_path: Path
) -> None:
    profile = make()
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    for name in linked.shown(profile):
        section = page.locator(f"#view-{name} section.wb").first
        section.wait_for()
        assert section.evaluate(WIDE) == 0, name
        for summary in section.locator("details.wb-data > summary").all():
            summary.focus()
            summary.press("Enter")
        rows = section.locator("tbody tr:not([aria-hidden])")
        nothing = getattr(profile, name).sentence.startswith("No ")  # to be drawn
        if name not in ALL_IN_SIGHT and not nothing:
            expect(rows, name).not_to_have_count(0)
            assert rows.first.inner_text().strip(), name
    assert failed == []
    page.screenshot(path=Path(__file__).parents[2] / "build" / "screens" / f"page-{width}-{scheme}.png", full_page=True)
    context.close()


def test_the_tile_map_of_a_page_walks_the_frames_that_it_holds(chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_pipeline()
    report = profile.playback.of(ipu=profile.tile_map.ipu)
    page = chromium.new_page()
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    plan = view(page, "Tile map")
    plan.get_by_label("colour").select_option("step_live")
    said = plan.locator(".wb-said")
    expect(said).to_contain_text(f"place {report.position} of {len(report.steps)}")
    canvas = plan.locator("canvas.wb-canvas")
    canvas.focus()
    for _ in range(len(report.steps)):
        canvas.press(",")
    expect(said).to_contain_text("place 0 of ")
    plan.get_by_text("Data table").click()
    cells = [row.split("\t") for row in plan.locator(".wb-data tbody tr").all_inner_texts()]
    drawn = {int(row[0]): int(row[1].replace(",", "")) for row in cells}
    assert drawn == dict(enumerate(report.frame(0).live_bytes.tolist()))
    page.close()


def test_a_row_that_is_chosen_has_one_ground_in_all_its_cells(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(handmade_profile().to_html(tmp_path / "profile.html").as_uri())
    rows = view(page, "Liveness").get_by_role("region", name="Live variables").locator("tbody tr")
    rows.first.click()
    ground = "all => all.map(e => getComputedStyle(e).backgroundColor)"
    chosen, other = rows.first.locator("td"), rows.nth(1).locator("td")
    page.mouse.move(0, 0)
    assert chosen.count() == 3
    assert len(set(chosen.evaluate_all(ground))) == 1
    assert set(chosen.evaluate_all(ground)).isdisjoint(other.evaluate_all(ground))
    page.close()
